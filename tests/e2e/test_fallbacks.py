"""Each weaker way, forced: the counts are the same."""

from pathlib import Path

import pytest

from harness import servers
from harness.load import Load
from harness.paths import SELFTIMED
from harness.profiler import Service, profile_load
from harness.sequential import assert_agrees, repeats

CPU_TOLERANCE = 0.1

LOAD = Load(full=100, resume=100, abort_hello=10, garbage=10, reject=10)


def profiled(profile: str, form: str, certificate, folder: Path):
    """The service as tlsprof saw it with `[profile]` set to `profile`, and as it saw itself."""
    config = folder / "tlsprof.toml"
    config.write_text(f"[profile]\n{profile}\n")
    with servers.selftimed(form, certificate) as server:
        report, _seen = profile_load(folder, server.port, LOAD, options=["--config", config])
        measured = server.finish()
    assert not report.losses_of_events()
    return report.service(SELFTIMED.name), measured


@pytest.mark.parametrize("links", ["single", "multi"])
def test_links_of_uprobes(links, rsa, tmp_path):
    service, measured = profiled(f'uprobes = "{links}"', "epoll", rsa, tmp_path)
    assert service.outcomes("server") == measured.outcomes
    assert service.resumed("server") == measured.resumed


def without_steps(certificate, folder: Path) -> float:
    """CPU time of handshakes by tlsprof to that by the server, whose counts it has."""
    service, measured = profiled('steps = "off"', "threads", certificate, folder)
    assert service.outcomes("server") == measured.outcomes
    assert service.resumed("server") == measured.resumed
    assert steps(service) <= {"unmeasured"}
    return service.cpu_seconds(role="server") / measured.cpu_seconds


def steps(service: Service) -> set[str]:
    return {step["step"] for step in service.data["steps"]}


def test_without_step_probes(rsa, tmp_path):
    """Handshakes are as exact as ever, and the hellos say what was resumed; nothing about steps is
    guessed."""
    assert without_steps(rsa, tmp_path) > 0


@pytest.mark.long
def test_cpu_time_without_step_probes(rsa, tmp_path):
    figures = repeats(lambda: without_steps(rsa, tmp_path))
    assert_agrees(figures, expected=1.0, within=CPU_TOLERANCE)


def test_key_derivation_always(rsa, tmp_path):
    service, measured = profiled('steps = "always"', "epoll", rsa, tmp_path)
    assert service.outcomes("server") == measured.outcomes
    derivation = [step for step in service.data["steps"] if step["step"] == "key_derivation"]
    assert [step["measured_handshakes"] for step in derivation] == [sum(measured.outcomes.values())]
    assert derivation[0]["cpu_seconds"] > 0
