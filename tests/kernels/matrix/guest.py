"""Boots a kernel in QEMU and reads what the checks in the guest print."""

import json
import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.libraries import copy_probed
from harness.profiler import Report

from .kernels import Bootable
from .machines import MACHINE

BOOT_SECONDS = 1800.0
"""Bound for one guest from power-on to power-off, on a busy host: on a quick one, most take a thirtieth of it, one for
aarch64 a tenth."""

INSTRUCTIONS = "shift=0,sleep=off"
"""The time of a guest with one CPU is what it executes, 1 ns an instruction, and passes at once while it
waits: nothing that the host does changes a figure (QEMU's manual, "TCG Instruction Counting")."""

COMMON = ["-m", "1G", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
COMMAND_LINE = "quiet panic=-1 mitigations=off"

END = "guest status 0"


@dataclass(frozen=True)
class Scenario:
    """What is done in a guest, and on what machine."""

    checks: str
    """The script of the guest."""

    cpus: int = 1

    options: str = ""
    """For the kernel's command line."""

    bound: float = BOOT_SECONDS
    """From power-on to power-off."""


@dataclass
class Check:
    """What one command printed in the guest, and how it ended."""

    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    status: int = -1

    @property
    def text(self) -> str:
        return "\n".join(self.out)

    @property
    def errors(self) -> str:
        return "\n".join(self.err)

    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True)
class Guest:
    """A guest that ran all of its checks."""

    kernel: Bootable
    checks: dict[str, Check]
    seconds: float

    def succeeded(self, name: str) -> Check:
        """A check that ended well; fails with what it printed otherwise."""
        check = self.checks[name]
        printed = f"{check.errors}\n{check.text}"
        assert check.status == 0, f"{name} ended with status {check.status}:\n{printed}"
        return check

    def report(self, way: str) -> Report:
        """Of a profile, while a command ran that must itself have ended well."""
        profile = self.succeeded(f"{way}_profile")
        found = Report(self.succeeded(f"{way}_report").json())
        assert found.data["command"]["exit_status"] == 0, profile.text
        return found

    def counters(self, name: str) -> dict[str, int]:
        """The kernel's, of a check that printed them as /proc/net/snmp does: a line of names, then
        one of values."""
        lines = [line.split()[1:] for line in self.succeeded(name).out]
        pairs = zip(lines[::2], lines[1::2])
        return {name: int(value) for names, values in pairs for name, value in zip(names, values)}


def boot(kernel: Bootable, scenario: Scenario, initramfs: Path, folder: Path) -> Guest:
    """Runs a guest to its end; the folder gets its console and its results."""
    results, console = folder / "results", folder / "console"
    command_line = f"{COMMAND_LINE} console={MACHINE.console} RESULTS={MACHINE.results}"
    command_line += f" CHECKS={scenario.checks} {scenario.options}"
    # Of two emulated CPUs on two threads one may run code that the other is just patching, as kernels do
    # with tracepoints: one thread for both. Linux 7.3 does not start two CPUs whose clock counts instructions.
    clock = ["-icount", INSTRUCTIONS] if scenario.cpus == 1 else []
    # Forced: a /dev/kvm that exists may still not boot a stock kernel.
    command = [*MACHINE.emulator, *COMMON, "-accel", "tcg,thread=single", *clock]
    command += ["-smp", str(scenario.cpus)]
    command += ["-chardev", f"file,id=console,path={console}"]
    command += ["-chardev", f"file,id=results,path={results}", *MACHINE.ports]
    command += ["-kernel", kernel.image, "-initrd", initramfs, "-append", command_line]
    emulator = shutil.which(MACHINE.emulator[0])
    assert emulator, f"{MACHINE.emulator[0]} is not installed"
    # Tests on this host, which place probes, may run meanwhile.
    env = {**os.environ, **copy_probed(emulator, folder / "libraries")}
    began = time.monotonic()
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=scenario.bound, check=True, env=env)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        raise AssertionError(f"{error}\n{_describe(kernel, console, results)}") from None
    lines = _lines(results)
    assert lines and lines[-1] == END, f"broke off: {_describe(kernel, console, results)}"
    return Guest(kernel, parse(lines), time.monotonic() - began)


def parse(lines: list[str]) -> dict[str, Check]:
    """Checks by name, from lines `NAME out TEXT`, `NAME err TEXT` and `NAME status N`."""
    checks: dict[str, Check] = {}
    for line in lines:
        name, kind, text = (line.split(" ", 2) + ["", ""])[:3]
        check = checks.setdefault(name, Check())
        if kind == "status":
            check.status = int(text)
        else:
            {"out": check.out, "err": check.err}[kind].append(text)
    return checks


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def _describe(kernel: Bootable, console: Path, results: Path) -> str:
    shown = ["--- console", *_lines(console)[-40:], "--- results", *_lines(results)[-40:]]
    return "\n".join([f"guest with Linux {kernel.release}", *shown])
