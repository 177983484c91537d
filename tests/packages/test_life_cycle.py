"""The .deb on a machine: installed, started, restarted, upgraded, removed."""

import json
import platform
import re
import urllib.parse
from typing import Iterator

import pytest

from harness.waiting import NotReached, wait_until
from installation import artifacts
from installation.machine import Machine

CONFIG = "/etc/tlsprof/tlsprof.toml"
UNIT = "tlsprof.service"
METRICS = "http://127.0.0.1:9843/metrics"

START_SECONDS = 60.0

CAPABILITIES = {"dac_read_search": 2, "sys_ptrace": 19, "syslog": 34, "perfmon": 38, "bpf": 39}
"""By their numbers in linux/capability.h."""

DROP_INS = {
    "other-networks": {"sys_admin"},
    "replaced-libraries": {"checkpoint_restore"},
    "older-kernels": {"sys_admin", "sys_resource"},
}
"""The capabilities that each adds."""

NEW_SETTINGS = ("RestartSteps", "RestartMaxDelaySec")
"""Of the unit, that versions of systemd before 254 do not know."""

HANDSHAKES = 7


@pytest.fixture
def deb():
    return artifacts.deb(platform.machine())


def start(machine: Machine) -> int:
    """Starts the agent; returns the id that its process has there."""
    machine.run("systemctl", "start", UNIT)
    return running(machine, METRICS)


def running(machine: Machine, url: str) -> int:
    """Waits until the agent profiles; returns the id of its process.

    It listens a moment before: what it can do is in the metrics when all is attached.
    """

    def scraped() -> bool:
        answer = machine.attempt("curl", "--silent", "--fail", url).stdout
        return "tlsprof_agent_capability{" in answer

    try:
        wait_until(scraped, f"{url} answers", START_SECONDS)
    except NotReached as error:
        raise AssertionError(f"{error}\n{log(machine)}") from None
    return int(machine.property(UNIT, "MainPID"))


def scrape(machine: Machine) -> str:
    return machine.run("curl", "--silent", "--fail", METRICS)


def log(machine: Machine) -> str:
    return machine.run("journalctl", "--unit", UNIT, "--no-pager")


def test_installing_starts_nothing(installed):
    assert installed.property(UNIT, "ActiveState") == "inactive"
    assert installed.property(UNIT, "UnitFileState") == "disabled"
    user = installed.run("getent", "passwd", "tlsprof").strip().split(":")
    assert user[6].endswith("/nologin")


def test_what_comes_with_the_program(installed, deb):
    version = artifacts.deb_field(deb, "Version").split("-")[0]
    assert installed.run("tlsprof", "--version") == f"tlsprof {version}\n"
    # The machine has PIDs of its own.
    doctor = installed.attempt("tlsprof", "doctor")
    assert doctor.returncode == 1
    assert doctor.stdout.startswith("Not ready: tlsprof runs in a PID namespace of its own")
    assert "openssl_handshakes" in doctor.stdout
    for page in ("tlsprof", "tlsprof-agent", "tlsprof-report"):
        assert "SYNOPSIS" in installed.run("man", page)
    assert completions(installed, "tlsprof rep") == ["report"]
    assert "--cpu-breakdown" in completions(installed, "tlsprof report --cpu")


def completions(machine: Machine, line: str) -> list[str]:
    """What bash offers at the end of a line."""
    script = (
        "source /usr/share/bash-completion/bash_completion; _completion_loader tlsprof; "
        'COMP_LINE=$1; COMP_POINT=${#1}; COMP_WORDS=($1); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); '
        'command=$(complete -p tlsprof | sed -E "s/.* -F ([^ ]+) .*/\\1/"); '
        '"$command" tlsprof "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    return machine.run("bash", "-c", script, "bash", line).split()


def test_unit_is_sound(installed):
    done = installed.attempt("systemd-analyze", "verify", f"/lib/systemd/system/{UNIT}")
    unknown = re.compile(rf".*Unknown key (name )?'({'|'.join(NEW_SETTINGS)})' .*ignoring\.")
    complaints = [line for line in done.stderr.splitlines() if not unknown.fullmatch(line)]
    assert not complaints
    table = installed.run("systemd-analyze", "security", "--no-pager", UNIT)
    exposure = re.search(r"Overall exposure level.*: ([0-9.]+)", table)
    assert exposure and float(exposure[1]) <= 2.8, table


def test_agent_has_its_own_user_and_five_capabilities(installed):
    pid = start(installed)
    status = installed.run("cat", f"/proc/{pid}/status")
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    user = installed.run("id", "--user", "tlsprof").strip()
    assert set(fields["Uid"].split()) == {user}
    # What it no longer needs it may have dropped.
    allowed = sum(1 << number for number in CAPABILITIES.values())
    assert int(fields["CapBnd"], 16) & ~allowed == 0
    assert int(fields["CapEff"], 16) & ~allowed == 0
    assert fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"


def test_service_can_do_what_root_can(installed):
    """Nothing that the unit closes is missed, but for what other-networks.conf is there for."""
    start(installed)
    line = r'^tlsprof_agent_capability\{capability="(\w+)",state="(\w+)"\} 1$'
    states = re.findall(line, scrape(installed), re.M)
    doctor = json.loads(installed.attempt("tlsprof", "doctor", "--format", "json").stdout)
    expected = {one["name"]: one["state"] for one in doctor["capabilities"]}
    assert dict(states) == {**expected, "accept_queues": "degraded"}
    assert expected["openssl_handshakes"] == expected["cpu_samples"] == "available"


@pytest.fixture
def drop_in(installed, request) -> Iterator[str]:
    """One of the package's drop-ins in use, as docs/install.md says how."""
    folder = f"/etc/systemd/system/{UNIT}.d"
    file = f"/usr/share/doc/tlsprof/drop-ins/{request.param}.conf"
    installed.run("install", "-D", "-m644", file, f"{folder}/{request.param}.conf")
    installed.run("systemctl", "daemon-reload")
    yield request.param
    installed.run("rm", "-r", folder)


@pytest.mark.parametrize("drop_in", DROP_INS, indirect=True)
def test_drop_in_adds_what_it_says_and_no_more(installed, drop_in):
    start(installed)
    names = installed.property(UNIT, "CapabilityBoundingSet").split()
    assert set(names) == {f"cap_{name}" for name in {*CAPABILITIES, *DROP_INS[drop_in]}}
    if "sys_admin" in DROP_INS[drop_in]:
        state = 'tlsprof_agent_capability{capability="accept_queues",state="available"}'
        only_where_namespaces_may_be_entered = int(drop_in == "other-networks")
        assert f"{state} {only_where_namespaces_may_be_entered}\n" in scrape(installed)


def test_handshakes_are_counted_exactly(installed):
    """By a server under a name of its own: the kernel, and so other load, is the host's."""
    serve(installed)
    start(installed)
    # The server was found and is profiled: its library is in the log's coverage.
    for _ in range(HANDSHAKES):
        installed.run("curl", "--silent", "--insecure", "https://127.0.0.1:4433/")
    wait_until(
        lambda: counted(installed) >= HANDSHAKES, "all handshakes are in the metrics", START_SECONDS
    )
    assert counted(installed) == HANDSHAKES


def serve(machine: Machine) -> None:
    """Starts `packaged`, a server with an Ed25519 certificate on port 4433."""
    machine.run("cp", "/usr/bin/openssl", "/usr/local/bin/packaged")
    machine.run(
        "openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=localhost",
        "-keyout", "/root/key.pem", "-out", "/root/cert.pem", "-days", "1",
    )  # fmt: skip
    machine.run(
        "systemd-run", "--quiet", "--unit=packaged", "/usr/local/bin/packaged", "s_server", "-www",
        "-accept", "4433", "-cert", "/root/cert.pem", "-key", "/root/key.pem",
    )  # fmt: skip

    def listens() -> bool:
        return ":1151 " in machine.run("cat", "/proc/net/tcp", "/proc/net/tcp6")

    wait_until(listens, "the server listens")


def counted(machine: Machine) -> int:
    line = r'^tlsprof_handshakes_total\{service_name="packaged",role="server".*"completed"\} (\d+)$'
    return sum(int(count) for count in re.findall(line, scrape(machine), re.M))


def test_agent_that_is_killed_comes_back(installed):
    pid = start(installed)
    installed.run("systemctl", "kill", "--signal=KILL", UNIT)
    wait_until(
        lambda: installed.property(UNIT, "NRestarts") == "1", "it is restarted", START_SECONDS
    )
    assert running(installed, METRICS) != pid


def test_reload_keeps_it_running(installed):
    pid = start(installed)
    installed.run("systemctl", "reload", UNIT)
    wait_until(lambda: "configuration reloaded" in log(installed), "the reload")
    assert int(installed.property(UNIT, "MainPID")) == pid


def test_upgrade_keeps_the_configuration_and_restarts(installed, deb, tmp_path):
    pid = start(installed)
    edited = '[agent]\nlisten = "127.0.0.1:9844"\n'
    installed.path(CONFIG).write_text(edited)
    release = artifacts.newer(deb, "99.0-1", tmp_path, CONFIG, "# of the newer release\n")
    # As apt does it where nobody can be asked.
    options = ("--force-confdef", "--force-confold", "--install")
    installed.run("dpkg", *options, installed.give(release))
    assert installed.path(CONFIG).read_text() == edited
    assert installed.path(f"{CONFIG}.dpkg-dist").read_text() == "# of the newer release\n"
    url = urllib.parse.urlsplit(METRICS)._replace(netloc="127.0.0.1:9844").geturl()
    assert running(installed, url) != pid


def test_upgrade_does_not_start_what_was_not_started(installed, deb, tmp_path):
    release = artifacts.newer(deb, "99.0-1", tmp_path, CONFIG, "# of the newer release\n")
    installed.run("dpkg", "--install", installed.give(release))
    assert installed.property(UNIT, "ActiveState") == "inactive"


def test_removal_stops_it_and_purge_leaves_nothing(installed):
    files = installed.run("dpkg", "--listfiles", "tlsprof").splitlines()
    start(installed)
    installed.run("systemctl", "enable", UNIT)
    installed.run("dpkg", "--remove", "tlsprof")
    assert installed.property(UNIT, "ActiveState") == "inactive"
    programs = installed.run("sh", "-c", "readlink /proc/[0-9]*/exe; true").split()
    assert "/usr/lib/systemd/systemd" in programs and "/usr/bin/tlsprof" not in programs
    assert installed.path(CONFIG).is_file()
    installed.run("dpkg", "--purge", "tlsprof")
    left = [path for path in files if "tlsprof" in path and installed.path(path).exists()]
    assert not left
    assert not list(installed.path("/etc/systemd/system").rglob("tlsprof*"))
