"""Where the kernel's tracing is, on hosts that have not mounted it as well."""

import shlex
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Sequence

from .processes import Argument

USUAL = Path("/sys/kernel/tracing")


@contextmanager
def mounted() -> Iterator[Path]:
    """Where it is; mounted in a temporary folder where the host has it not."""
    if (USUAL / "instances").is_dir():
        yield USUAL
        return
    with tempfile.TemporaryDirectory(prefix="tlsprof-tests-") as folder:
        subprocess.run(["mount", "-t", "tracefs", "tracefs", folder], check=True)
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", folder], check=True)


def in_sight(command: Sequence[Argument]) -> list[str]:
    """A command that finds it where bpftrace looks for tracepoints."""
    wanted = shlex.join(str(argument) for argument in command)
    mount = "mount -t debugfs none /sys/kernel/debug"
    return ["unshare", "--mount", "sh", "-c", f"{mount} && exec {wanted}"]
