"""CPU time that a process spends in functions that its libraries export, by bpftrace's probes there."""

import re
import shlex
from pathlib import Path
from typing import Iterable, Mapping

from .processes import Argument, run
from .tracefs import in_sight

MOST_SECONDS = 300.0

WITHOUT_WAITS = """tracepoint:sched:sched_switch {
  if (@began[args->prev_pid]) { @left[args->prev_pid] = nsecs; }
  if (@left[args->next_pid]) {
    @began[args->next_pid] += nsecs - @left[args->next_pid];
    delete(@left[args->next_pid]);
  }
}"""


def seconds_in(
    pid: int, library: str, functions: Mapping[str, Iterable[str]], command: Iterable[Argument]
) -> dict[str, float]:
    """Seconds by step while `command` runs. `functions` by step, of which none calls another; `library` is how the
    name of their file begins."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    (file,) = set(re.findall(rf"/\S*/{re.escape(library)}\S*$", maps, re.MULTILINE))
    probes = [
        f"uprobe:{file}:{name} /pid == {pid}/ {{ @began[tid] = nsecs; }} "
        f"uretprobe:{file}:{name} /@began[tid]/ "
        f'{{ @spent["{step}"] = sum(nsecs - @began[tid]); delete(@began[tid]); }}'
        for step, names in functions.items()
        for name in names
    ]
    child = shlex.join(str(argument) for argument in command)
    trace = ["bpftrace", "-c", child, "-e", " ".join([*probes, WITHOUT_WAITS])]
    done = run(in_sight(trace), timeout=MOST_SECONDS)
    spent = re.findall(r"^@spent\[(\w+)\]: (\d+)$", done.stdout, re.MULTILINE)
    assert {step for step, _nanos in spent} == set(functions), done.describe()
    return {step: int(nanos) / 1e9 for step, nanos in spent}
