"""Where the programs under test and the helpers are."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
ROOT = TESTS.parent
PROGRAMS = Path(os.environ.get("TLSPROF_TEST_PROGRAMS", ROOT / "target" / "tests"))
TLSPROF = Path(os.environ.get("TLSPROF", ROOT / "target" / "ci" / "tlsprof"))
SERVERS = TESTS / "servers"

SELFTIMED = PROGRAMS / "selftimed"
LOADGEN = PROGRAMS / "loadgen"
PRIMITIVES = PROGRAMS / "primitives"
HOG = PROGRAMS / "hog"
COROUTINES = PROGRAMS / "coroutines"
COROUTINE_LIBRARY = PROGRAMS / "libcoroutine.so"
RECORD_CLOCK = PROGRAMS / "librecordclock.so"
RANDOM_PIPE = PROGRAMS / "librandompipe.so"
