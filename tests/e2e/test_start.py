"""What starting tlsprof costs, by what the kernel counts: a time proves nothing on a shared machine."""

from harness import bpf
from harness.profiler import Profiling

VERIFIED = 60_000
"""Instructions that the verifier goes through at most for one program, each a microsecond or more.

Up to 30,039 were seen on 6.18. Loops that it goes through for each way that leads to them made
it 120,298."""
VERIFIED_IN_ALL = 175_000
"""167,197 were seen; 147,096 before connections that open between windows had a table of their own."""


def test_loading_asks_little_of_the_verifier(tmp_path):
    with Profiling(tmp_path) as profiling:
        programs = [
            int(fields["verified_insns"])
            for _, fields in bpf.descriptors(profiling.pid)
            if "verified_insns" in fields
        ]
    assert len(programs) > 15, programs
    assert max(programs) < VERIFIED, programs
    assert sum(programs) < VERIFIED_IN_ALL, programs
