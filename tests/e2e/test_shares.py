"""The share of a server's CPU time in TLS handshakes: the same by steps, by histogram and by samples, whether or
not step probes are attached, from the first seconds on; and the same in metrics, report and live page. What handshakes took is
what the kernel charged the server for connections that do nothing else."""

import shutil
import signal
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import pytest

from harness import metrics, plain_nginx
from harness.certificates import Certificate
from harness.estimate import cpu_seconds
from harness.libraries import copy_openssl
from harness.network import free_port
from harness.outlets import in_live_page, live_state
from harness.processes import Process, run
from harness.profiler import Agent, Profiling, Service, start_agent
from harness.servers import Server
from harness.steal import assert_agree, watch_steal
from harness.waiting import wait_until
from harness.watched import wait_for_cpu_times
from harness.web_servers import nginx, reload_nginx

pytestmark = pytest.mark.apart

STEPS = "tlsprof_handshake_step_cpu_seconds_total"
BY_OUTCOME = "tlsprof_handshake_outcome_cpu_seconds_total"
HISTOGRAM = "tlsprof_handshake_cpu_seconds_sum"
ACTIVITIES = "tlsprof_cpu_seconds_total"
SERVICE_CPU = "tlsprof_service_cpu_seconds_total"
HANDSHAKES = "tlsprof_handshakes_total"
DUTY = "tlsprof_agent_step_probes_duty_ratio"

SERVICE = plain_nginx.unique("shares")
CLIENTS = 4
CONNECTIONS = 4000
"""Of a load; there are as many loads as take `LOAD_SECONDS`."""
LOAD_SECONDS = 7.0
"""Longer than five seconds, after which an agent first judges what its probes cost."""
AFTER_RELOAD = 200
LARGE = """
set $kilobytes "%s"; set $more "%s";
location = /large { return 200 "%s"; }
""" % ("x" * 2048, "$kilobytes" * 16, "$more" * 8)
"""Answers of 256 KiB: CPU time that is no handshake, and not longer for other work in the cache that CPUs share. nginx
may not read files in the folders of tests."""

AGREE = 0.10
BARE = 600
"""Connections that carry a handshake and next to nothing else."""
FREQUENCY = 397
"""Samples a second: some 3,000 over the load, so that the share by samples has a standard error of 1%."""

VARIANTS = {
    "off": '[agent]\nbudget = 1.0\n[profile]\nsteps = "off"\n',
    "throttled": '[agent]\nbudget = 1.0\nkeep = "library_probes"\n[profile]\n',
    "exact": "[agent]\nbudget = 1.0\n[profile]\n",
}


@dataclass(frozen=True)
class Moment:
    """What an agent said at a time of ours."""

    at: float
    samples: list[metrics.Sample]

    def total(self, name: str, **labels: str) -> float:
        return metrics.total(self.samples, name, service_name=SERVICE, **labels)

    @property
    def activity(self) -> float:
        all_modes = self.total(ACTIVITIES, activity="handshake")
        return all_modes - self.total(ACTIVITIES, activity="handshake", mode="softirq")

    def shares(self) -> dict[str, float]:
        """By each way to know them; the first moment of an agent is zero in all."""
        cpu = self.total(SERVICE_CPU)
        by = {name: self.total(name) for name in (STEPS, BY_OUTCOME, HISTOGRAM)}
        return {name: value / cpu for name, value in {**by, "activity": self.activity}.items()}

    def signatures(self) -> dict[str, float]:
        """Full TLS 1.3 handshakes by signature."""
        kind = dict(version="TLS1.3", resumption="none", outcome="completed")
        found = [one.labels["signature"] for one in self.samples if one.name == HANDSHAKES]
        return {one: self.total(HANDSHAKES, signature=one, **kind) for one in sorted(set(found))}


@dataclass(frozen=True)
class Bare:
    """CPU seconds of the handshakes of `BARE` connections after the load, in the same time."""

    after: dict[str, Moment]
    charged: float
    """By the kernel: what all of it cost, less what these connections cost without TLS. It holds making and freeing
    the TLS object, too."""
    stolen: float


@dataclass(frozen=True)
class Scene:
    """A load that agents of all variants, and a report, have watched from its first connection on."""

    by_variant: dict[str, list[Moment]]
    connections: int
    """Of the load."""
    after_reload: dict[str, Moment]
    report: Service
    live: float
    bare: Bare
    stolen: float
    """The share of the CPU time that the hypervisor took during the load."""


def moment(agent: Agent) -> Moment:
    return Moment(monotonic(), metrics.scrape(agent.url))


def load(port: int, connections: int, *more: str, scheme: str = "https", path: str = "large") -> list[str]:
    command = ["ab", "-q", "-r", "-f", "TLS1.3", "-n", str(connections), "-c", str(CLIENTS), *more]
    return [*command, f"{scheme}://127.0.0.1:{port}/{path}"]


def bare(server: Server, plain: int, agents: dict[str, Agent], known: int) -> Bare:
    """`plain` is the port without TLS; `known` handshakes are in what the agents have said so far."""

    def charged(*options: str, port: int = server.port, scheme: str = "https") -> float:
        begun = cpu_seconds(server.pid)
        done = run(load(port, BARE, *options, scheme=scheme, path=""))
        assert done.child.returncode == 0 and "Non-2xx" not in done.stdout, done.describe()
        return cpu_seconds(server.pid) - begun

    steal = watch_steal()
    whole = charged()
    stolen = steal()
    after = {name: settled(agent, known + BARE) for name, agent in agents.items()}
    kept = charged("-k")
    plain_new, plain_kept = (charged(*more, port=plain, scheme="http") for more in ([], ["-k"]))
    print(f"{whole:.3f} s, on open connections {kept:.3f}; without TLS {plain_new:.3f} and {plain_kept:.3f}")
    return Bare(after, whole - kept - (plain_new - plain_kept), stolen)


def throttle(agent: Agent, config: Path) -> None:
    """From now on the budget takes the step probes out."""
    config.write_text(config.read_text().replace("budget = 1.0", "budget = 0.0001"))
    agent.process.child.send_signal(signal.SIGHUP)


def watch(agents: dict[str, Agent], port: int, throttled: Path) -> tuple[dict[str, list[Moment]], int]:
    """What the agents say about each second while the load runs, and once all of it is in; and the connections of
    the load. After the first handshakes one of them is throttled."""
    measured = lambda: seen["throttled"][-1].total(HANDSHAKES) > 0
    is_throttled = False
    seen = {name: [moment(agent)] for name, agent in agents.items()}
    began, connections = monotonic(), 0
    while monotonic() - began < LOAD_SECONDS:
        connections += CONNECTIONS
        with Process(load(port, CONNECTIONS)) as running:
            while running.alive():
                sleep(1.0)
                for name, agent in agents.items():
                    seen[name].append(moment(agent))
                if measured() and not is_throttled:
                    is_throttled = True
                    throttle(agents["throttled"], throttled)
            assert running.wait(5.0) == 0, running.describe()
    for name, agent in agents.items():
        seen[name].append(settled(agent, connections))
    return seen, connections


def settled(agent: Agent, handshakes: int) -> Moment:
    """Once all handshakes are in, and the agent has read CPU times again."""
    counted = lambda: moment(agent).total(HANDSHAKES, outcome="completed") >= handshakes
    wait_until(counted, f"{handshakes} handshakes in the metrics")
    known = deque([moment(agent)], maxlen=2)

    def still() -> bool:
        wait_for_cpu_times(agent.url)
        known.append(moment(agent))
        return known[0].total(SERVICE_CPU) == known[1].total(SERVICE_CPU)

    wait_until(still, "CPU times that stand still")
    return known[1]


@pytest.fixture(scope="module")
def scene(certificates, tmp_path_factory) -> Scene:
    """nginx with RSA-2048, P-384 before X25519, as in the demo."""
    folder = tmp_path_factory.mktemp("shares")
    folder.chmod(0o755)
    own = Certificate(folder / "own.crt", folder / "own.key", folder / "own.pem")
    install(certificates["rsa2048"], own)
    plain = free_port()
    extra = f"listen 127.0.0.1:{plain}; ssl_ecdh_curve secp384r1:X25519; {LARGE}"
    program = folder / SERVICE
    shutil.copy(shutil.which("nginx"), program)
    with ExitStack() as stack:
        # A library of its own: steps are not probed in one that a process of the host maps which
        # may switch stacks, such as QEMU.
        options = dict(env=copy_openssl(program, folder), workers=1, protocols="TLSv1.3", extra=extra)
        server = stack.enter_context(nginx(folder, own, program=program, **options))
        agents = {}
        for name, text in VARIANTS.items():
            config = folder / f"{name}.toml"
            config.write_text(f"{text}sample_frequency = {FREQUENCY}\n")
            agents[name] = stack.enter_context(start_agent(["--config", config, "--service", SERVICE]))
        with Profiling(folder, "--service", SERVICE) as profiling:
            steal = watch_steal()
            by_variant, connections = watch(agents, server.port, folder / "throttled.toml")
            stolen = steal()
            profiling.finish()
        live = in_live_page(live_state(agents["exact"], SERVICE)).share
        without_load = bare(server, plain, agents, connections)
        install(certificates["ecdsa"], own)
        reload_nginx(server)
        run(load(server.port, AFTER_RELOAD, path=""))
        # Open connections had a handshake, too.
        handshakes = connections + BARE + CLIENTS + AFTER_RELOAD
        after = {name: settled(agent, handshakes) for name, agent in agents.items()}
    return Scene(by_variant, connections, after, profiling.report.service(SERVICE), live, without_load, stolen)


def install(certificate: Certificate, where: Certificate) -> None:
    for have, want in ((certificate.cert, where.cert), (certificate.key, where.key)):
        shutil.copy(have, want)


@pytest.mark.parametrize("variant", VARIANTS)
def test_all_ways_to_know_the_share_agree(scene, variant):
    shares = scene.by_variant[variant][-1].shares()
    assert 0.3 < shares[HISTOGRAM] < 0.95 / (1 - scene.stolen)
    for name in (STEPS, BY_OUTCOME):
        assert shares[name] == pytest.approx(shares[HISTOGRAM], rel=AGREE), (name, shares)
    assert_agree(shares[HISTOGRAM], shares["activity"], AGREE, scene.stolen, shares)


@pytest.mark.parametrize("variant", VARIANTS)
def test_handshakes_took_what_the_kernel_charged_for_them(scene, variant):
    bare = scene.bare
    spent = bare.after[variant].total(HISTOGRAM) - scene.by_variant[variant][-1].total(HISTOGRAM)
    assert_agree(spent, bare.charged, AGREE, bare.stolen)


@pytest.mark.parametrize("variant", VARIANTS)
def test_steps_follow_the_histogram_at_every_moment(scene, variant):
    moments = scene.by_variant[variant]
    for one in moments:
        assert one.total(STEPS) == pytest.approx(one.total(BY_OUTCOME), rel=1e-6, abs=1e-6)
    # A scrape reads histograms a moment before counters.
    completed = moments[-1].total(BY_OUTCOME, outcome="completed")
    assert completed == pytest.approx(moments[-1].total(HISTOGRAM), rel=1e-6)
    begins = [(first, later) for first in moments for later in moments if later.at - first.at >= 5.0]
    assert begins
    for first, later in begins:
        by_steps = later.total(STEPS) - first.total(STEPS)
        by_histogram = later.total(HISTOGRAM) - first.total(HISTOGRAM)
        assert by_steps == pytest.approx(by_histogram, rel=AGREE, abs=0.02)


def test_the_variants_are_what_they_say(scene):
    duty = {name: metrics.total(seen[-1].samples, DUTY) for name, seen in scene.by_variant.items()}
    assert duty["off"] == 0 and duty["throttled"] < 1
    share = lambda one: one.total(STEPS, step="unmeasured") / one.total(STEPS)
    unmeasured = {name: share(seen[-1]) for name, seen in scene.by_variant.items()}
    assert unmeasured["off"] == 1
    assert unmeasured["throttled"] < 0.05 and unmeasured["exact"] < 0.05


def test_the_signature_is_learned_and_not_carried_to_new_workers(scene):
    before, after = (
        {name: seen.signatures() for name, seen in moments.items()} for moments in (scene.bare.after, scene.after_reload)
    )
    assert before["off"]["unknown"] >= scene.connections + BARE
    on_open_connections = {"off": 0, "throttled": CLIENTS, "exact": CLIENTS}
    for name, before_reload in on_open_connections.items():
        if before_reload:
            assert before[name]["rsa_2048"] >= 0.95 * (scene.connections + BARE), before
        assert after[name].get("rsa_2048", 0) == before[name].get("rsa_2048", 0) + before_reload, (before, after)
        assert sum(after[name].values()) >= scene.connections + BARE + CLIENTS + AFTER_RELOAD


def test_report_and_live_page_say_the_same_share(scene):
    shares = scene.by_variant["exact"][-1].shares()
    cpu = scene.report.data["cpu_seconds"]
    report = scene.report.cpu_seconds() / (cpu["user"] + cpu["system"])
    assert report == pytest.approx(shares[BY_OUTCOME], rel=0.03)
    assert scene.live == pytest.approx(shares[BY_OUTCOME], rel=0.03)
