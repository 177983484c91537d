"""Servers in namespaces and control groups of their own, as container runtimes put them."""

import os
import re
import shutil
import subprocess
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, Sequence

import pytest

from harness import groups, libraries, servers
from harness.certificates import Certificate
from harness.load import Load, Seen, run_load
from harness.paths import SELFTIMED
from harness.processes import Argument, run
from harness.profiler import LOG, Profiling
from harness.servers import SelfTimed

LOAD = Load(full=60, resume=60, abort_flight=10, garbage=10)

UNSHARE_MOUNTS = ["unshare", "--mount", "--propagation", "private"]
UNSHARE_PIDS = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
UNSHARE_NETWORK = ["unshare", "--net"]
UNSHARE_USER = ["unshare", "--user", "--map-root-user"]
UNSHARE_ALL = [*UNSHARE_MOUNTS, *UNSHARE_PIDS[1:], "--net", "--ipc", "--uts", *UNSHARE_USER[1:]]

FILL = 'mount -t tmpfs tmpfs "$1" && cp -a "$2/." "$1"'
"""A file system that is nowhere but in this mount namespace."""

OVERLAY = (
    'mount -t tmpfs tmpfs "$2" && mkdir "$2/upper" "$2/work" "$2/root" && '
    'mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"'
)
"""The root folder of a container, of which all but what it writes is a layer that others share."""

LIBRARIES = "opt/tls"
"""Where an image has OpenSSL, and the host has nothing."""


def shell(script: str, *arguments: Argument) -> list[Argument]:
    """A command that does what `script` says with `arguments`, then becomes the rest of the line."""
    return ["sh", "-c", f'{script} && shift {len(arguments)} && exec "$@"', "sh", *arguments]


@pytest.fixture
def program(tmp_path) -> Path:
    """The self-timed server under a name of its own, as services are named after it."""
    return Path(shutil.copy(SELFTIMED, tmp_path / f"contained-{os.getpid()}"))


@contextmanager
def contained(
    before: Sequence[Argument], program: Path, certificate: Certificate, library_path: Argument = ""
) -> Iterator[SelfTimed]:
    """The self-timed server, started by way of the command `before`."""
    command = [*before, program, "--epoll", "--cert", certificate.cert, "--key", certificate.key]
    env = {"LD_LIBRARY_PATH": str(library_path)}
    with servers.announcing(command, env=env) as server:
        yield SelfTimed(server.port, server.process)


def run_load_inside(load: Load, server: SelfTimed) -> Seen:
    """Runs the load in the network namespace of a server."""
    done = run(["nsenter", f"--net=/proc/{server.pid}/ns/net", *load.command(server.port)])
    assert done.child.returncode == 0, done.describe()
    return Seen.parse(done.stdout)


def assert_all_counted(profiling: Profiling, name: str, server: SelfTimed) -> None:
    """Ends the profile, then the server, and compares."""
    profiling.finish()
    measured = server.finish()
    service = profiling.report.service(name)
    assert measured.outcomes == {
        "completed": LOAD.full + LOAD.resume,
        "failed": LOAD.failing,
        "abandoned": LOAD.aborted,
    }
    assert service.outcomes("server") == measured.outcomes
    assert service.resumed("server") == measured.resumed
    assert server.port in service.ports


def test_library_that_only_a_mount_namespace_has(program, rsa, tmp_path):
    inside, source = tmp_path / "inside", tmp_path / "source"
    inside.mkdir()
    libraries.copy_openssl(SELFTIMED, source)
    before = [*UNSHARE_MOUNTS, *shell(FILL, inside, source)]
    with contained(before, program, rsa, library_path=inside) as server:
        assert str(inside / "libssl.so.3") in Path(f"/proc/{server.pid}/maps").read_text()
        assert not list(inside.iterdir()), "the library is visible outside"
        with Profiling(tmp_path) as profiling:
            run_load(LOAD, server.port)
            assert_all_counted(profiling, program.name, server)


@pytest.mark.parametrize("before", [UNSHARE_PIDS, UNSHARE_USER], ids=["process-ids", "users"])
def test_own_namespace(before, program, rsa, tmp_path):
    with contained(before, program, rsa) as server, Profiling(tmp_path) as profiling:
        run_load(LOAD, server.port)
        assert_all_counted(profiling, program.name, server)


def test_own_network(program, rsa, tmp_path):
    """Client and server; the port may well be taken by somebody else outside."""
    before = [*UNSHARE_NETWORK, *shell("ip link set lo up")]
    with contained(before, program, rsa) as server, Profiling(tmp_path) as profiling:
        run_load_inside(LOAD, server)
        assert_all_counted(profiling, program.name, server)


@pytest.fixture
def image(program, rsa, tmp_path) -> Path:
    """A root folder with the server, its libraries and a certificate, and nothing else."""
    root = tmp_path / "image"
    needed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    for library in re.findall(r"(/\S+) \(0x", needed):
        if not re.search(r"lib(ssl|crypto)\.", library):
            copy_into(root, Path(library), library)
    libraries_folder = root / LIBRARIES
    libraries_folder.parent.mkdir(parents=True)
    libraries.copy_openssl(SELFTIMED, libraries_folder)
    for file in (program, rsa.cert, rsa.key):
        copy_into(root, file, file.name)
    (root / "proc").mkdir()
    return root


def copy_into(root: Path, file: Path, place: str) -> None:
    target = root / place.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(file, target)


@contextmanager
def container(image: Path, program: Path, certificate: Certificate, inside: Path) -> Iterator[SelfTimed]:
    """A server in namespaces of every kind, with the image as its root."""
    inside.mkdir()
    before = [*UNSHARE_ALL, *shell(f"ip link set lo up && {FILL}", inside, image), "chroot", inside]
    with in_image(before, program, certificate) as server:
        yield server


@contextmanager
def in_image(before: Sequence[Argument], program: Path, certificate: Certificate) -> Iterator[SelfTimed]:
    """The server of an image, all paths as they are inside."""
    files = (certificate.cert, certificate.key, certificate.both)
    inside = Certificate(*(Path("/", file.name) for file in files))
    with contained(before, Path("/", program.name), inside, library_path=f"/{LIBRARIES}") as server:
        yield server


def test_container_with_everything_of_its_own(image, program, rsa, tmp_path):
    with container(image, program, rsa, tmp_path / "root") as server:
        with Profiling(tmp_path) as profiling:
            run_load_inside(LOAD, server)
            assert_all_counted(profiling, program.name, server)


def test_container_that_starts_while_the_host_is_profiled(image, program, rsa, tmp_path):
    with Profiling(tmp_path, *LOG) as profiling:
        with container(image, program, rsa, tmp_path / "root") as server:
            profiling.wait_attached(f"{LIBRARIES}/libssl.so.3")
            run_load_inside(LOAD, server)
            assert_all_counted(profiling, program.name, server)


@contextmanager
def on_layer(image: Path, program: Path, certificate: Certificate, inside: Path) -> Iterator[SelfTimed]:
    """A server whose root is an overlay on the image."""
    inside.mkdir()
    before = [*UNSHARE_MOUNTS, *shell(OVERLAY, image, inside), "chroot", inside / "root"]
    with in_image(before, program, certificate) as server:
        yield server


def test_containers_that_share_a_layer(image, program, rsa, tmp_path):
    """One libssl, which the kernel shows as a file of each container's own: each hit of its probes runs
    the programs of both."""
    with on_layer(image, program, rsa, tmp_path / "one") as one:
        with on_layer(image, program, rsa, tmp_path / "other") as other, Profiling(tmp_path) as profiling:
            run_load(LOAD, one.port)
            for _ in range(2):
                run_load(LOAD, other.port)
            profiling.finish()
            measured = [one.finish(), other.finish()]
    service = profiling.report.service(program.name)
    outcomes = [Counter(server.outcomes) for server in measured]
    assert service.outcomes("server") == dict(sum(outcomes, Counter()))
    assert service.count(source="library")


def test_chroot(image, program, rsa, tmp_path):
    with in_image(["chroot", image], program, rsa) as server, Profiling(tmp_path) as profiling:
        run_load(LOAD, server.port)
        assert_all_counted(profiling, program.name, server)


@pytest.fixture
def control_groups() -> Iterator[Path]:
    """A control group (version 2) of this test, removed afterwards with all that are in it."""
    with groups.control_group() as root:
        if not root:
            pytest.skip("no control group of version 2 can be made here")
        yield root


def joining(group: Path) -> list[Argument]:
    """A command that goes into a control group, then becomes the rest of the line."""
    group.mkdir(parents=True)
    return shell('echo $$ > "$1/cgroup.procs"', group)


IDS = ["0123456789abcdef" * 4, "fedcba9876543210" * 4]

CONTAINER_GROUPS = {
    "docker": "system.slice/docker-{id}.scope",
    "docker-cgroupfs": "docker/{id}",
    "kubernetes": "kubepods.slice/kubepods-pod5f1d.slice/cri-containerd-{id}.scope",
    "podman": "machine.slice/libpod-{id}.scope/container",
}


@pytest.mark.parametrize("runtime", CONTAINER_GROUPS)
def test_containers_of_one_program_are_services_of_their_own(runtime, control_groups, program, rsa, tmp_path):
    first, second = (control_groups / CONTAINER_GROUPS[runtime].format(id=name) for name in IDS)
    with contained(joining(first), program, rsa) as one, contained(joining(second), program, rsa) as other:
        with Profiling(tmp_path) as profiling:
            run_load(LOAD, one.port)
            for _ in range(2):
                run_load(LOAD, other.port)
            assert_all_counted(profiling, f"{program.name}@{IDS[0][:12]}", one)
        service = profiling.report.service(f"{program.name}@{IDS[1][:12]}")
        assert service.outcomes("server") == other.finish().outcomes


def test_service_is_named_after_its_unit(control_groups, program, rsa, tmp_path):
    name = f"shop-{os.getpid()}"
    group = control_groups / "system.slice" / f"{name}.service"
    with contained(joining(group), program, rsa) as server, Profiling(tmp_path) as profiling:
        run_load(LOAD, server.port)
        assert_all_counted(profiling, name, server)
        assert program.name not in [service.name for service in profiling.report.services]


def test_container_is_named_when_it_starts_while_the_host_is_profiled(control_groups, program, rsa, tmp_path):
    """Its program is started, then moved to its group, then replaced, as runtimes do."""
    environment = libraries.copy_openssl(SELFTIMED, tmp_path / "lib")
    group = control_groups / CONTAINER_GROUPS["docker"].format(id=IDS[0])
    with Profiling(tmp_path, *LOG) as profiling:
        with contained(joining(group), program, rsa, environment["LD_LIBRARY_PATH"]) as server:
            profiling.wait_attached(tmp_path / "lib" / "libssl.so.3")
            run_load(LOAD, server.port)
            assert_all_counted(profiling, f"{program.name}@{IDS[0][:12]}", server)
