"""What tlsprof can do on each kernel today, and why it cannot do more.

A capability that is not named here must be available. Whoever lifts a limit takes it
out here; the tests fail until then.
"""

from dataclasses import dataclass, field

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

    skipped_tiers: tuple[str, ...] = ()
    """Ways to see socket calls whose programs the kernel leaves out at times."""

    @property
    def exact(self) -> bool:
        """What comes from socket calls and states of connections is exact, forced to nothing."""
        return self.tiers[0] not in self.skipped_tiers

    @property
    def tiers(self) -> list[str]:
        """Ways to see socket calls, the one that is used first."""
        return [tier for tier in TIERS if f"socket_calls_{tier}" not in self.limits]

    @property
    def refused_tiers(self) -> list[str]:
        """The others."""
        return [tier for tier in TIERS if f"socket_calls_{tier}" in self.limits]


TIERS = ("tracepoint", "fentry", "raw_syscalls")
"""Best first."""

# uprobe_multi: 6.6 (kernel commit 89ae89f53d20). The tracepoints sock_send_length and
# sock_recv_length: 6.3 (kernel commit 6e6eda44b939). bpf_task_pt_regs: 5.15 (kernel commit
# dd6e10fbd9fb), bpf_sk_storage_get in tracing programs: 5.11 (kernel commit 8e4597c627fb).
NO_MULTI = Limit("degraded", r"no uprobe_multi links")
NO_TRACEPOINTS = Limit("unavailable", r"unknown BTF type `btf_trace_sock_recv_length`")
NO_FENTRY = Limit(
    "unavailable", r"fexit/tcp_recvmsg: .*Invalid argument.*unknown func bpf_sk_storage_get"
)

# Programs may be preempted, those on functions wherever the kernel preempts lazily or
# fully, as 6.18 and later do, those on tracepoints from 7.1 on (not on 7.0). Until the task
# goes on, the kernel skips that program on that CPU for everybody else
# (bpf_prog_info.recursion_misses). More often under emulation, where a program takes long.
ON_ALL_MACHINES = {
    "5.10": Expected(
        limits={
            "uprobe_multi": NO_MULTI,
            "socket_calls_tracepoint": NO_TRACEPOINTS,
            "socket_calls_fentry": NO_FENTRY,
        },
    ),
    "6.1": Expected(
        limits={
            "uprobe_multi": NO_MULTI,
            "socket_calls_tracepoint": NO_TRACEPOINTS,
        },
    ),
    "6.12": Expected(),
    "6.18": Expected(skipped_tiers=("fentry",)),
    "newest": Expected(skipped_tiers=TIERS),
    "6.12-aarch64": Expected(),
}

EXPECTED = {name: ON_ALL_MACHINES[name] for name in KERNELS}
