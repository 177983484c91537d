"""Each weaker way, forced: the counts are the same."""

import pytest

from harness import servers
from harness.load import Load
from harness.profiler import profile_load
from harness.settling import assert_median

CPU_TOLERANCE = 0.1

LOAD = Load(full=100, resume=100, abort_hello=10, garbage=10, reject=10)


def profiled(profile: str, form: str, certificate, folder):
    """The service as tlsprof saw it with `[profile]` set to `profile`, and as it saw itself."""
    config = folder / "tlsprof.toml"
    config.write_text(f"[profile]\n{profile}\n")
    with servers.selftimed(form, certificate) as server:
        report, _seen = profile_load(folder, server.port, LOAD, options=["--config", config])
        measured = server.finish()
    assert not report.losses_of_events()
    return report.service("selftimed"), measured


@pytest.mark.parametrize("links", ["single", "multi"])
def test_links_of_uprobes(links, rsa, tmp_path):
    service, measured = profiled(f'uprobes = "{links}"', "epoll", rsa, tmp_path)
    assert service.outcomes("server") == measured.outcomes
    assert service.resumed("server") == measured.resumed


def test_without_step_probes(rsa, tmp_path):
    """Handshakes and their CPU time are as exact as ever, and the hellos say what was resumed;
    nothing about steps is guessed."""

    def measure() -> float:
        service, measured = profiled('steps = "off"', "threads", rsa, tmp_path)
        assert service.outcomes("server") == measured.outcomes
        assert service.resumed("server") == measured.resumed
        assert {step["step"] for step in service.data["steps"]} <= {"unmeasured"}
        return service.cpu_seconds(role="server") / measured.cpu_seconds

    assert_median(measure, expected=1.0, within=CPU_TOLERANCE, least=1, most=7)


def test_key_derivation_always(rsa, tmp_path):
    service, measured = profiled('steps = "always"', "epoll", rsa, tmp_path)
    assert service.outcomes("server") == measured.outcomes
    derivation = [step for step in service.data["steps"] if step["step"] == "key_derivation"]
    assert [step["measured_handshakes"] for step in derivation] == [sum(measured.outcomes.values())]
    assert derivation[0]["cpu_seconds"] > 0
