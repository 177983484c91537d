# SPDX-License-Identifier: Apache-2.0 OR MIT
"""bpf(2) as far as benchmarks need it: programs that are loaded, attached to tracepoints."""

import ctypes
import os
import platform
import struct
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterable, Iterator

BPF_OBJ_GET, BPF_PROG_GET_FD_BY_ID, BPF_RAW_TRACEPOINT_OPEN = 7, 13, 17
"""enum bpf_cmd, include/uapi/linux/bpf.h."""
NUMBER = {"x86_64": 321, "aarch64": 280}
ATTRIBUTES_LEN = 128

libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> int:
    """A new file descriptor."""
    memory = ctypes.create_string_buffer(attributes, ATTRIBUTES_LEN)
    number = NUMBER[platform.machine()]
    result = libc.syscall(number, command, memory, ATTRIBUTES_LEN)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def program_by_id(number: int) -> int:
    """Keeps the program in the kernel as long as it is open."""
    return _bpf(BPF_PROG_GET_FD_BY_ID, struct.pack("<I", number))


def pinned_program(path: Path) -> int:
    name = ctypes.create_string_buffer(str(path).encode())
    return _bpf(BPF_OBJ_GET, struct.pack("<QI", ctypes.addressof(name), 0))


@contextmanager
def attached(programs: Iterable[int]) -> Iterator[None]:
    """Programs that know their tracepoint (tp_btf) run meanwhile."""
    with ExitStack() as links:
        for program in programs:
            links.callback(os.close, _bpf(BPF_RAW_TRACEPOINT_OPEN, struct.pack("<QI", 0, program)))
        yield
