"""A port means whoever listens there: a service that is started anew is profiled on."""

import pytest

from harness import web_servers
from harness.load import Load, run_load
from harness.network import is_listening
from harness.processes import Process, children
from harness.profiler import Profiling
from harness.scenarios import cpu_seconds
from harness.waiting import wait_until

LIBRARY_OFF = '[profile]\nlibrary = "off"\n'

BEFORE, AFTER = Load(full=40), Load(full=80)


@pytest.mark.parametrize("config", [LIBRARY_OFF, ""], ids=["sockets", "library"])
def test_a_service_that_is_restarted_is_counted_in_full(config, rsa, tmp_path):
    """And the report names the process that ended."""
    file = tmp_path / "tlsprof.toml"
    file.write_text(config)
    with web_servers.nginx(tmp_path, rsa) as old:
        with Profiling(tmp_path, "--config", file, "--port", old.port) as profiling:
            run_load(BEFORE, old.port)
            old.process.stop()
            with Process(old.process.child.args) as new:
                wait_until(lambda: is_listening(new.pid, old.port) and len(children(new.pid)) == 2, "nginx")
                run_load(AFTER, old.port)
                used = sum(cpu_seconds(new.pid))
                profiling.finish()
    service = profiling.report.on_port(old.port)
    assert service.outcomes("server") == {"completed": 120, "failed": 0, "abandoned": 0}
    assert service.data["processes"] == 3
    cpu = service.data["cpu_seconds"]
    assert cpu["user"] + cpu["system"] >= used * 0.98
    notes = " ".join(profiling.report.data["notes"])
    assert f"port {old.port} ended during the profile ({service.name}, pid {old.pid}, after " in notes
    assert "nothing to probe" not in notes or config
    assert profiling.report.losses_of_events() == {}
