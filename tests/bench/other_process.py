# SPDX-License-Identifier: Apache-2.0 OR MIT
"""System calls in another process, of x86-64."""

from signal import SIGTRAP
from typing import Iterable

from ptrace.debugger import PtraceDebugger, PtraceProcess

DUP2 = 33
SYSCALL = b"\x0f\x05"
NO_CALL = 2**64 - 1
"""In orig_rax: the process is in no system call that the kernel would repeat."""
STANDARD_INPUT = 0


def replace_by_standard_input(pid: int, descriptors: Iterable[int]) -> None:
    """A process that closes these later does no harm."""
    debugger = PtraceDebugger()
    try:
        process = debugger.addProcess(pid, is_attached=False)
        before = process.getregs()
        try:
            for descriptor in descriptors:
                _call(process, DUP2, STANDARD_INPUT, descriptor)
        finally:
            process.setregs(before)
    finally:
        debugger.quit()


def _call(process: PtraceProcess, number: int, first: int, second: int) -> None:
    """By an instruction that every process has. Of the registers only the general ones are written: gdb writes them
    all, and fails where the kernel refuses that (AMX)."""
    registers = process.getregs()
    registers.rip = _syscall_instruction(process)
    registers.rax, registers.orig_rax = number, NO_CALL
    registers.rdi, registers.rsi = first, second
    process.setregs(registers)
    process.singleStep()
    process.waitSignals(SIGTRAP)
    assert process.getreg("rax") == second, f"system call {number} in process {process.pid} failed"


def _syscall_instruction(process: PtraceProcess) -> int:
    (vdso,) = [mapping for mapping in process.readMappings() if mapping.pathname == "[vdso]"]
    at = process.readBytes(vdso.start, vdso.end - vdso.start).find(SYSCALL)
    assert at >= 0, "no system call in the vDSO"
    return vdso.start + at
