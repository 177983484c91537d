# SPDX-License-Identifier: Apache-2.0 OR MIT
"""bpf(2) as far as benchmarks need it: programs that are loaded, attached to hooks."""

import ctypes
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path

BPF_OBJ_GET, BPF_PROG_GET_FD_BY_ID, BPF_RAW_TRACEPOINT_OPEN, BPF_LINK_CREATE = 7, 13, 17, 28
"""enum bpf_cmd, include/uapi/linux/bpf.h; what is in capitals below is from there, too."""
BPF_TRACE_UPROBE_MULTI = 48
BPF_F_UPROBE_MULTI_RETURN = 1
NUMBER = {"x86_64": 321, "aarch64": 280}
ATTRIBUTES_LEN = 128
PIDFD_GETFD = 438

libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    """A new file descriptor."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _bpf(command: int, attributes: bytes) -> int:
    memory = ctypes.create_string_buffer(attributes, ATTRIBUTES_LEN)
    number = NUMBER[platform.machine()]
    return _checked(libc.syscall(number, command, memory, ATTRIBUTES_LEN))


def program_by_id(number: int) -> int:
    """Keeps the program in the kernel as long as it is open."""
    return _bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("<I", number))


def pinned_program(path: Path) -> int:
    name = ctypes.create_string_buffer(str(path).encode())
    return _bpf(BPF_OBJ_GET, struct.pack("<QI", ctypes.addressof(name), 0))


def attach_to_kernel(program: int) -> int:
    """A program that knows its tracepoint or function (tp_btf, fentry) runs there as long as what is
    returned is open."""
    return _bpf(BPF_RAW_TRACEPOINT_OPEN, struct.pack("<QI", 0, program))


@dataclass(frozen=True)
class Probes:
    """Where in a file a program goes."""

    path: str
    offsets: list[int]
    cookies: list[int]
    on_return: bool


def attach_to_file(program: int, probes: Probes) -> int:
    """The same for a program on functions of processes (uprobe_multi)."""
    count = len(probes.offsets)
    path = ctypes.create_string_buffer(probes.path.encode())
    offsets, cookies = ((ctypes.c_uint64 * count)(*them) for them in (probes.offsets, probes.cookies))
    flags = BPF_F_UPROBE_MULTI_RETURN if probes.on_return else 0
    head = struct.pack("<IIII", program, 0, BPF_TRACE_UPROBE_MULTI, 0)
    places = (ctypes.addressof(path), ctypes.addressof(offsets), 0, ctypes.addressof(cookies))
    return _bpf(BPF_LINK_CREATE, head + struct.pack("<QQQQIII", *places, count, flags, 0))


def descriptor_of(pid: int, number: int) -> int:
    """A copy of another process's descriptor."""
    process = os.pidfd_open(pid)
    try:
        return _checked(libc.syscall(PIDFD_GETFD, process, number, 0))
    finally:
        os.close(process)
