"""The static program in its tarball: `make release` and `make test-long` make it, `make test-deploy` does not."""

import json
import platform
import shutil
import subprocess
import tarfile

import pytest

from harness.certificates import make_certificate
from harness.paths import ROOT
from harness.web_servers import nginx
from installation import artifacts

MADE = artifacts.tarballs()
HANDSHAKES = 120
"""More than the 100 that a finding needs."""

pytestmark = pytest.mark.skipif(not MADE, reason="no tarball: `make test-long` and `make release` make them")


@pytest.fixture(scope="module", params=MADE)
def machine(request) -> str:
    """Each kind of machine that a tarball was made for."""
    return request.param


@pytest.fixture(scope="module")
def folder(machine, tmp_path_factory):
    """What the tarball holds, unpacked."""
    with tarfile.open(artifacts.tarball(machine)) as tar:
        assert {(one.uid, one.gid, one.mode & 0o022) for one in tar} == {(0, 0, 0)}
        (name,) = {one.name.split("/")[0] for one in tar}
    unpacked = tmp_path_factory.mktemp("tarball")
    artifacts.output("tar", "-xzf", artifacts.tarball(machine), "-C", unpacked)
    assert f"{name}.tar.gz" == artifacts.tarball(machine).name
    return unpacked / name


def test_it_has_the_documents_beside_the_program(folder):
    for path in (
        "README.md", "CHANGELOG.md", "LICENSE", "licences/THIRD-PARTY", "licences/musl",
        "docs/install.md", "docs/guide/domino.md", "docs/findings/README.md", "man/tlsprof.1", "man/tlsprof-report.1",
        "completions/tlsprof.bash", "examples/tlsprof.toml", "examples/domino.toml",
        "dashboards/README.md", "dashboards/rules", "dashboards/grafana",
    ):  # fmt: skip
        assert (folder / path).exists(), path


def test_program_is_static_and_for_its_machine(machine, folder):
    header = artifacts.output("readelf", "--file-header", folder / "tlsprof")
    assert {"x86_64": "X86-64", "aarch64": "AArch64"}[machine] in header
    assert "INTERP" not in artifacts.output("readelf", "--program-headers", "--wide", folder / "tlsprof")
    assert artifacts.needed_libraries(folder / "tlsprof") == set()


def test_no_path_of_the_machine_that_built_it(folder):
    program = (folder / "tlsprof").read_bytes()
    assert str(ROOT).encode() not in program
    assert b"/.cargo/registry" not in program


def test_program_starts_without_any_library(machine, folder, tmp_path):
    """In a root folder with nothing else; for another machine in QEMU."""
    if machine == platform.machine():
        shutil.copy(folder / "tlsprof", tmp_path)
        said = artifacts.output("chroot", tmp_path, "/tlsprof", "--version")
    else:
        emulator = shutil.which(f"qemu-{machine}") or pytest.skip(f"no qemu-{machine}")
        said = artifacts.output(emulator, folder / "tlsprof", "--version")
    assert said.startswith("tlsprof ")


def test_it_counts_handshakes_and_says_that_it_cannot_calibrate(machine, folder, tmp_path):
    if machine != platform.machine():
        pytest.skip(f"this machine is no {machine}")
    tmp_path.chmod(0o755)
    with nginx(tmp_path, make_certificate(tmp_path, "rsa2048"), workers=1) as server:
        address = f"https://127.0.0.1:{server.port}/"
        load = ["ab", "-q", "-n", str(HANDSHAKES), "-c", "1", address]
        command = [folder / "tlsprof", "report", "--port", str(server.port), "--format", "json", "--", *load]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout[done.stdout.index("{") :])
    (service,) = report["services"]
    assert sum(group["count"] for group in service["handshakes"]) == HANDSHAKES
    (certificate,) = [one for one in report["findings"] if one["id"] == "costly-certificate"]
    method = certificate["prediction"]["method"]
    assert "the library was not calibrated: the static tlsprof cannot load it" in method, method
