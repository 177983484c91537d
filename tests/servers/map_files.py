# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Maps files executable, as the dynamic loader would, and holds them.

Files cut short after this are still mapped here. Ends when its standard input does.

usage: map_files.py FILE...
"""

import mmap
import os
import sys


def map_executable(path: str) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return mmap.mmap(descriptor, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
    finally:
        os.close(descriptor)


held = [map_executable(path) for path in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
