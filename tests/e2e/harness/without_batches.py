"""Runs a program as on a kernel that hands over elements of maps one by one only.

Of bpf(2) its command BPF_MAP_LOOKUP_AND_DELETE_BATCH fails as one that the kernel does not
know, by a filter of seccomp(2) that the program inherits.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

BPF_CALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
LOOKUP_AND_DELETE_BATCH = 25

# include/uapi/linux/{bpf_common,seccomp,prctl}.h
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERROR = 0x7FFF0000, 0x00050000
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
NUMBER, FIRST_ARGUMENT = 0, 16
"""Offsets in struct seccomp_data; of the argument, its low half."""

FILTER = [
    (LOAD_WORD, 0, 0, NUMBER),
    (JUMP_IF_EQUAL, 0, 3, BPF_CALL),
    (LOAD_WORD, 0, 0, FIRST_ARGUMENT),
    (JUMP_IF_EQUAL, 0, 1, LOOKUP_AND_DELETE_BATCH),
    (RETURN, 0, 0, ERROR | errno.EINVAL),
    (RETURN, 0, 0, ALLOW),
]


class Program(ctypes.Structure):
    """struct sock_fprog"""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def deny_batches() -> None:
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in FILTER)
    program = Program(len(FILTER), code)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "cannot install the filter")


if __name__ == "__main__":
    deny_batches()
    os.execv(sys.argv[1], sys.argv[1:])
