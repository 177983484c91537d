"""Requests of a load test: read from what the load tool prints, exact whatever HTTP/2 multiplexes."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator

import pytest

from harness.estimate import cpu_seconds
from harness.paths import TLSPROF, TOOLS
from harness.processes import Argument, run
from harness.profiler import Report
from harness.servers import Server
from harness.web_servers import nginx

REQUESTS = 10_000
DEPTHS = (1, 10, 50)
CONNECTIONS = 4

OUTSIDE = 0.05
"""Of what the server uses in a run, at most this share falls before tlsprof is attached or after it detached."""

DATA = bytes(16_000)


@dataclass(frozen=True)
class Bench:
    """An nginx with HTTP/2 that writes an access log."""

    server: Server
    folder: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server.port}/data"

    def logged(self) -> int:
        return (self.folder / "access.log").read_bytes().count(b"\n")

    def profile(self, name: str, *command: Argument, options: tuple[Argument, ...] = ()) -> Report:
        """A report of the server while the command runs."""
        target = self.folder / f"{name}.json"
        port = ["--port", self.server.port]
        done = run([TLSPROF, "report", *port, "--format", "json", "-o", target, *options, "--", *command])
        assert done.child.returncode == 0, done.describe()
        return Report(json.loads(target.read_text()))

    def service(self, report: Report) -> dict[str, Any]:
        return report.on_port(self.server.port).data


@pytest.fixture(scope="module")
def bench(rsa, tmp_path_factory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("requests")
    folder.chmod(0o755)
    (folder / "data").write_bytes(DATA)
    extra = f"access_log {folder}/access.log; location = /data {{ root {folder}; }}"
    with nginx(folder, rsa, workers=1, extra=extra, parameters=" http2") as server:
        yield Bench(server, folder)


def h2load(bench: Bench, depth: int) -> list[Argument]:
    return ["h2load", "-n", REQUESTS, "-c", CONNECTIONS, "-m", depth, bench.url]


@dataclass(frozen=True)
class Run:
    """What a report says of the service, and the CPU time that the kernel charged the server meanwhile, in seconds."""

    service: dict[str, Any]
    charged: float

    @property
    def each(self) -> float:
        """CPU seconds a request."""
        return sum(self.service["cpu_seconds"].values()) / self.service["requests"]["count"]


@pytest.fixture(scope="module")
def at_depths(bench) -> dict[int, Run]:
    """A report at each depth of multiplexing."""
    found = {}
    for depth in DEPTHS:
        logged, charged = bench.logged(), cpu_seconds(bench.server.pid)
        report = bench.profile(f"depth-{depth}", *h2load(bench, depth))
        assert bench.logged() - logged == REQUESTS
        found[depth] = Run(bench.service(report), cpu_seconds(bench.server.pid) - charged)
    return found


@pytest.mark.apart
def test_the_count_is_that_of_the_load_tool(at_depths):
    for service in (one.service for one in at_depths.values()):
        assert service["requests"] == {"count": REQUESTS, "counted_by": "h2load"}
        (server,) = [one for one in service["connections"] if one["role"] == "server"]
        assert server["turns_are_requests"] is False


@pytest.mark.apart
def test_a_request_costs_what_the_kernel_charged_the_server(at_depths):
    for one in at_depths.values():
        assert one.each * REQUESTS == pytest.approx(one.charged, rel=OUTSIDE)


def compare(bench: Bench, first: str, second: str) -> dict[str, Any]:
    """Figures of a comparison."""
    files = [bench.folder / f"{name}.json" for name in (first, second)]
    done = run([TLSPROF, "compare", "--format", "json", *files])
    assert done.child.returncode == 0, done.describe()
    (service,) = json.loads(done.stdout)["services"]
    return {one["figure"]: one for one in service["figures"]}


@pytest.mark.apart
def test_requests_that_were_counted_are_compared_at_any_depth(bench, at_depths):
    depths = DEPTHS[0], DEPTHS[-1]
    figures = compare(bench, *(f"depth-{one}" for one in depths))
    figure = figures["cpu_per_request"]
    assert [one["value"] for one in figure["levels"]] == pytest.approx([at_depths[one].each for one in depths])
    assert figure["changes"][0]["verdict"] != "not_judged", figure
    assert "turns_per_connection" not in figures


def test_turns_are_not_called_requests_where_nobody_counted(bench):
    for depth in (1, 50):
        words = " ".join(str(one) for one in h2load(bench, depth))
        service = bench.service(bench.profile(f"uncounted-{depth}", "sh", "-c", words))
        assert service["requests"] is None
    figure = compare(bench, "uncounted-1", "uncounted-50")["cpu_per_request"]
    assert figure["changes"][0]["verdict"] == "not_judged"
    assert "HTTP/2" in figure["caveat"]
    done = run([TLSPROF, "report", "--port", bench.server.port, "--", "sh", "-c", words])
    assert "CPU per request:" not in done.stdout
    assert "turn (may carry several requests)" in done.stdout


def test_the_user_may_give_the_count(bench):
    report = bench.profile("given", *h2load(bench, 10), options=("--requests", 20_000))
    assert bench.service(report)["requests"] == {"count": 20_000, "counted_by": "--requests"}


def test_what_ab_prints_reaches_the_user_and_is_read(bench):
    before = bench.logged()
    done = run([TLSPROF, "report", "--port", bench.server.port, "--", "ab", "-q", "-n", 500, "-c", 2, bench.url])
    assert done.child.returncode == 0, done.describe()
    assert bench.logged() - before == 500
    printed, _, report = done.stdout.partition("(longest request)\n")
    assert printed.startswith("This is ApacheBench") and "Complete requests:      500\n" in printed
    assert "CPU per request: " in report and "(500 requests as counted by ab" in " ".join(report.split())


def test_a_server_is_not_blamed_for_what_ab_asked(bench):
    report = bench.profile("closes", "ab", "-q", "-n", 500, "-c", 2, bench.url)
    (finding,) = [one for one in report.data["findings"] if one["id"] == "keep-alive-off"]
    assert (finding["severity"], finding["title"]) == ("info", "Connections carry one request each")
    assert "`ab` without `-k`" in finding["evidence"][0]


def test_a_load_generator_has_no_findings_of_its_own(bench):
    target = bench.folder / "all.json"
    command = ["ab", "-q", "-n", 500, "-c", 2, bench.url]
    done = run([TLSPROF, "report", "--format", "json", "-o", target, "--", *command])
    assert done.child.returncode == 0, done.describe()
    report = json.loads(target.read_text())
    assert any(one["service_name"] == "ab" for one in report["services"])
    assert not any(one["service_name"] == "ab" for one in report["findings"])


@pytest.mark.skipif(subprocess.run(["which", "wrk"], capture_output=True).returncode != 0, reason="no wrk")
def test_wrk_counts_as_the_access_log_does(bench):
    before = bench.logged()
    service = bench.service(bench.profile("wrk", "wrk", "-t", 1, "-c", CONNECTIONS, "-d", "1s", bench.url))
    requests = service["requests"]
    assert requests["counted_by"] == "wrk"
    # wrk leaves at the end, whatever is still under way on its connections.
    assert 0 <= bench.logged() - before - requests["count"] <= CONNECTIONS


K6_SCRIPT = """
import http from "k6/http";
export default function () {{ http.get("{url}"); }}
"""


def by_oha(program: Path, bench: Bench) -> list[Argument]:
    return [program, "-n", 500, "-c", CONNECTIONS, "--insecure", bench.url]


def by_k6(program: Path, bench: Bench) -> list[Argument]:
    script = bench.folder / "script.js"
    script.write_text(K6_SCRIPT.format(url=bench.url))
    return [program, "run", "--iterations", 500, "--vus", CONNECTIONS, "--insecure-skip-tls-verify", script]


@pytest.mark.long
@pytest.mark.parametrize("name, command", [("oha", by_oha), ("k6", by_k6)])
def test_tools_that_no_distribution_has_count_as_the_access_log_does(name, command, bench):
    program = next(filter(None, map(shutil.which, (name, TOOLS / name))), None)
    if not program:
        pytest.skip(f"no {name}: deploy/packages/tools.sh load")
    before = bench.logged()
    service = bench.service(bench.profile(name, *command(Path(program), bench)))
    assert bench.logged() - before == 500
    assert service["requests"] == {"count": 500, "counted_by": name}
