"""What tlsprof can do on each kernel today, and why it cannot do more.

A capability that is not named here must be available. Whoever lifts a limit takes it
out here; the tests fail until then.
"""

from dataclasses import dataclass, field
from typing import Optional

from .kernels import KERNELS


@dataclass(frozen=True)
class Limit:
    """A capability that does not work, or not wholly."""

    state: str
    """`degraded` or `unavailable`."""

    reason: str
    """Regular expression that tlsprof's own reason matches."""


@dataclass(frozen=True)
class Expected:
    """What holds on one kernel."""

    limits: dict[str, Limit] = field(default_factory=dict)

    refusal: Optional[str] = None
    """Regular expression of the error, where nothing can be profiled at all."""

    shares_stacks: bool = False
    """Programs on uprobes spoil each other's values: a few handshakes are lost or wrong."""

    skips_programs: bool = False
    """The kernel leaves out runs of programs on tracepoints: a few connections are lost."""

    @property
    def handshakes(self) -> bool:
        """Handshakes are counted exactly."""
        return not self.refusal and not self.shares_stacks

    @property
    def connections(self) -> bool:
        """Connections are counted exactly."""
        return not self.refusal and not self.skips_programs

    @property
    def turns(self) -> bool:
        """Turns are counted exactly."""
        return self.connections and "connection_turns" not in self.limits


# bpf_get_attach_cookie, helper 174, is there from 5.15 on (kernel commit 7adfc6c9b315).
# One program that is refused ends the load, so nothing else is available either. Of the
# others only tcp_state would be refused: bpf_sk_storage_get in tracing programs is there
# from 5.11 on (kernel commit 8e4597c627fb).
NO_COOKIES = r"handshake_enter.*Invalid argument[\s\S]*invalid func unknown#174"

# uprobe_multi: 6.6 (kernel commit 89ae89f53d20). The tracepoints sock_send_length and
# sock_recv_length: 6.3 (kernel commit 6e6eda44b939).
NO_MULTI = Limit("degraded", r"no uprobe_multi links")
NO_SOCKET_CALLS = Limit("unavailable", r"unknown BTF type `btf_trace_sock_recv_length`")

# Programs on uprobes may be preempted (since 6.0), and since 6.13 (kernel commit
# a76ab5731e32) a program that uses 64 bytes of stack or more has one stack per CPU: two
# tasks inside it on one CPU overwrite each other's values. Seen on kernels that preempt
# lazily or fully, which 6.18 and later do, 6.12 does not; more often under emulation,
# where a program takes long.
#
# Programs on tracepoints may be preempted too, seen from 7.1 on and not on 7.0. Until the
# task goes on, the kernel skips that program on that CPU for everybody else
# (bpf_prog_info.recursion_misses).
EXPECTED = {
    "5.10": Expected(
        limits={
            name: Limit("unavailable", NO_COOKIES)
            for name in (
                "openssl_handshakes",
                "uprobe_multi",
                "uprobes",
                "connections",
                "connection_turns",
            )
        },
        refusal=NO_COOKIES,
    ),
    "6.1": Expected(limits={"uprobe_multi": NO_MULTI, "connection_turns": NO_SOCKET_CALLS}),
    "6.12": Expected(),
    "6.18": Expected(shares_stacks=True),
    "newest": Expected(shares_stacks=True, skips_programs=True),
}

assert EXPECTED.keys() == KERNELS.keys()
