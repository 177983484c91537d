# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The hooks of a running agent, taken over by a benchmark that attaches and detaches them.

A debugger puts something else in the place of the agent's links, so that its programs, with their
maps, run only where they are attached here. The agent notices nothing, and goes on reading what they
send. Its clocks for samples are enabled and disabled instead.
"""

import fcntl
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, Optional

from bpf_calls import Probes, attach_to_file, attach_to_kernel, descriptor_of, program_by_id
from harness import bpf
from other_process import replace_by_standard_input

PERF_EVENT_IOC_ENABLE, PERF_EVENT_IOC_DISABLE = 0x2400, 0x2401  # include/uapi/linux/perf_event.h
TRACEPOINT_LINKS = ("tracing", "raw_tracepoint")
"""Kernels name those of tp_btf programs in one way or the other."""
PROBE_LINKS = ("uprobe_multi", "uretprobe_multi")
_POINT = re.compile(r"^(\d+)\s+(0x[0-9a-f]+)\s+0x0$", re.MULTILINE)

SAMPLES = "samples"
PARTS = {
    "tcp_": "states",
    "socket_": "calls",
    "syscall_returned": "calls",
    "accepted_": "accepts",
    "sched_switch": "scheduler",
    "process_": "processes",
    "thread_": "processes",
    "step_": "steps",
}
"""What a program is part of, by the beginning of its name; all others are in the library."""


@dataclass(frozen=True)
class Hook:
    """One program at its places."""

    part: str
    attach: Callable[[], int]
    """Returns a descriptor, with which it goes."""
    on_return: bool = False


@dataclass(frozen=True)
class Hooks:
    """All of them."""

    hooks: list[Hook]
    clocks: list[int]

    @contextmanager
    def attached(self, parts: set[str]) -> Iterator[None]:
        """What ends a call comes first and goes last. The kernel waits for each that goes: they go
        at the same time."""
        chosen = [hook for hook in self.hooks if hook.part in parts]
        links = [(hook, hook.attach()) for hook in sorted(chosen, key=lambda hook: not hook.on_return)]
        try:
            with self._sampled(SAMPLES in parts):
                yield
        finally:
            for on_return in (False, True):
                some = [link for hook, link in links if hook.on_return == on_return]
                with ThreadPoolExecutor(max(1, len(some))) as threads:
                    list(threads.map(os.close, some))

    @contextmanager
    def _sampled(self, wanted: bool) -> Iterator[None]:
        """The clocks tick in here only. If that is not wanted, they tick outside as well, so that they
        are in both kinds of windows: the agent starts others where they stand still for a second."""
        if not wanted:
            yield
            return
        self._switch(PERF_EVENT_IOC_ENABLE)
        try:
            yield
        finally:
            self._switch(PERF_EVENT_IOC_DISABLE)

    def _switch(self, request: int) -> None:
        for clock in self.clocks:
            fcntl.ioctl(clock, request, 0)


def _names() -> dict[int, str]:
    """All programs."""
    listed = subprocess.run(["bpftool", "-j", "prog", "show"], check=True, capture_output=True)
    return {one["id"]: one.get("name", "") for one in json.loads(listed.stdout)}


def _part(name: str) -> str:
    return next((part for begin, part in PARTS.items() if name.startswith(begin)), "library")


def linked_parts(pid: int) -> set[str]:
    """What of the agent's programs is attached by itself now, probes not included."""
    names = _names()
    links = (fields for _, fields in bpf.descriptors(pid) if fields.get("link_type") in TRACEPOINT_LINKS)
    return {_part(names.get(int(fields["prog_id"]), "")) for fields in links}


def _hook(pid: int, number: int, fields: dict[str, str], names: dict[int, str]) -> Optional[Hook]:
    kind, program = fields.get("link_type"), int(fields.get("prog_id", 0))
    if kind in TRACEPOINT_LINKS:
        descriptor = program_by_id(program)
        return Hook(_part(names[program]), lambda: attach_to_kernel(descriptor))
    if kind in PROBE_LINKS:
        try:
            file = os.open(fields["path"], os.O_RDONLY)  # others may remove it meanwhile
        except FileNotFoundError:
            return None
        descriptor, returns = program_by_id(program), kind == "uretprobe_multi"
        points = _POINT.findall(Path(f"/proc/{pid}/fdinfo/{number}").read_text())
        assert len(points) == int(fields["uprobe_cnt"]), fields
        offsets, cookies = [int(point[1], 16) for point in points], [int(point[0]) for point in points]
        probes = Probes(f"/proc/self/fd/{file}", offsets, cookies, returns)
        return Hook(_part(names[program]), lambda: attach_to_file(descriptor, probes), returns)
    return None


def take_hooks(pid: int) -> Hooks:
    """From now on the agent's programs run only where they are attached by what is returned."""
    names = _names()
    found = {number: _hook(pid, number, fields, names) for number, fields in bpf.descriptors(pid)}
    hooks = {number: hook for number, hook in found.items() if hook}
    clocks = [descriptor_of(pid, number) for number in found if _is_clock(pid, number)]
    assert hooks
    replace_by_standard_input(pid, hooks)
    return Hooks(list(hooks.values()), clocks)


def _is_clock(pid: int, number: int) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}") == "anon_inode:[perf_event]"
    except FileNotFoundError:  # a file of /proc that the agent has read meanwhile
        return False
