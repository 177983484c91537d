#!/usr/bin/python3
"""Series of an agent, and what they take to store: the figures of docs/fleet.md.

    tests/bench/series.py [SECONDS]

Profiles an nginx with TLS 1.2 and 1.3, full and resumed handshakes and some failures, and one
without TLS, while two Prometheus servers scrape the agent twice a second: one takes native
histograms, one classic. Then it counts their series by service, and the bytes of a snapshot. Wants
root, the test programs (make -C tests) and TLSPROF.
"""

import json
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from harness import metrics, plain_nginx, web_servers  # noqa: E402
from harness.certificates import make_certificate  # noqa: E402
from harness.load import Load, run_load  # noqa: E402
from harness.observatory import Observatory, observatory  # noqa: E402
from harness.profiler import start_agent  # noqa: E402

LOADS = [
    Load(tls=tls, full=40, resume=40, garbage=2, reject=2, abort_flight=2) for tls in ("1.2", "1.3")
]
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
OURS = '{job="tlsprof",__name__=~"tlsprof_.*"'


def load(seconds: float, tls_port: int, plain_port: int) -> None:
    """Keeps both servers busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for one in LOADS:
            run_load(one, tls_port)
        plain_nginx.request(plain_port, 20)


def print_series(kind: str, prometheus: Observatory) -> None:
    """Series by service, those of the host, and those that rules record."""
    now = time.time()
    for series in prometheus.query(f'count by (service_name) ({OURS},service_name!=""}})', now):
        print(f"{kind}: {series.value:g} series of service {series.labels['service_name']}")
    host = prometheus.number(f'count({OURS},service_name=""}})', now)
    recorded = prometheus.query('count by (service_name) ({__name__=~".*:tlsprof_.*"})', now)
    print(f"{kind}: {host:g} series of the host")
    for series in recorded:
        print(f"{kind}: {series.value:g} recorded of {series.labels.get('service_name', 'the host')}")


def print_bytes(kind: str, prometheus: Observatory, folder: Path) -> None:
    """What a snapshot of all takes on disk."""
    request = urllib.request.Request(f"{prometheus.url}/api/v1/admin/tsdb/snapshot", method="POST")
    with urllib.request.urlopen(request, timeout=60):
        pass
    for meta in folder.glob("tsdb/snapshots/*/*/meta.json"):
        stats = json.loads(meta.read_text())["stats"]
        chunks = sum(path.stat().st_size for path in (meta.parent / "chunks").iterdir())
        index = (meta.parent / "index").stat().st_size
        samples, series = stats["numSamples"], stats["numSeries"]
        print(f"{kind}: {chunks / samples:.2f} bytes a sample, {index / series:.0f} of index a series")


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        agent = stack.enter_context(start_agent())
        tls = stack.enter_context(web_servers.nginx(folder, make_certificate(folder, "rsa2048")))
        plain = stack.enter_context(plain_nginx.nginx(folder, "plain"))
        target = urllib.parse.urlsplit(agent.url).netloc
        both = {
            kind: stack.enter_context(
                observatory(folder / kind, target, kind == "native", ["--web.enable-admin-api"])
            )
            for kind in ("native", "classic")
        }
        load(seconds, tls.port, plain.port)
        for kind, prometheus in both.items():
            print_series(kind, prometheus)
            print_bytes(kind, prometheus, folder / kind)
        for name, accept in (("OpenMetrics", metrics.OPENMETRICS), ("protobuf", PROTOBUF)):
            request = urllib.request.Request(agent.url, headers={"Accept": accept})
            with urllib.request.urlopen(request, timeout=10) as answer:
                print(f"a scrape in {name}: {len(answer.read())} bytes")


if __name__ == "__main__":
    main()
