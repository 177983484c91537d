"""Where the programs under test and the helpers are."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
ROOT = TESTS.parent
PROGRAMS = Path(os.environ.get("TLSPROF_TEST_PROGRAMS", ROOT / "target" / "tests"))
TLSPROF = Path(os.environ.get("TLSPROF", ROOT / "target" / "ci" / "tlsprof"))
SERVERS = TESTS / "servers"
TOOLS = ROOT / "target" / "tools" / "bin"
"""What deploy/packages/tools.sh brings."""

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
"""The process of this test, if several run tests side by side."""


def own(name: str) -> Path:
    """A program of ours. Each worker has copies: a service is known by the name of its program."""
    return PROGRAMS / WORKER / f"{name}-{WORKER}" if WORKER else PROGRAMS / name


SELFTIMED = own("selftimed")
SELFTIMED_GNUTLS = own("selftimed_gnutls")
LOADGEN = own("loadgen")
HOG = own("hog")
PRIMITIVES = PROGRAMS / "primitives"
COROUTINES = PROGRAMS / "coroutines"
COROUTINE_LIBRARY = PROGRAMS / "libcoroutine.so"
RECORD_CLOCK = PROGRAMS / "librecordclock.so"
RANDOM_PIPE = PROGRAMS / "librandompipe.so"
