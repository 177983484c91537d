"""What is in the packages, without installing them."""

import gzip
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness.paths import ROOT
from harness.suites import Suite, Unobtainable
from installation import artifacts

OLDEST_GLIBC = (2, 28)
"""Of RHEL 8 and Debian 10."""

OTHER_PLACE = {
    "/usr/share/zsh/site-functions/_tlsprof": "/usr/share/zsh/vendor-completions/_tlsprof",
    "/usr/share/licenses/tlsprof/LICENSE": "/usr/share/doc/tlsprof/copyright",
}
"""Where the .rpm has a file that the .deb has elsewhere."""


@pytest.fixture
def unpacked(architecture, tmp_path):
    """The .deb's files."""
    artifacts.output("dpkg-deb", "--extract", artifacts.deb(architecture), tmp_path / "deb")
    return tmp_path / "deb"


def test_both_packages_have_the_same_files(architecture):
    deb = artifacts.deb_files(artifacts.deb(architecture))
    rpm = artifacts.rpm_files(artifacts.rpm(architecture))
    in_rpm = {OTHER_PLACE.get(path, path) for path in rpm}
    in_deb = {path for path in deb if not path.endswith("/changelog.Debian.gz")}
    # Debian compresses long documents, RPM none.
    assert {path.removesuffix(".gz") for path in in_deb} == {
        path.removesuffix(".gz") for path in in_rpm
    }


def test_they_carry_the_guide_and_the_domino_configuration(architecture):
    """Where docs/guide/domino.md says; the configuration can be used as it is."""
    page = (ROOT / "docs/guide/domino.md").read_text()
    for files in artifacts.deb_files(artifacts.deb(architecture)), artifacts.rpm_files(artifacts.rpm(architecture)):
        configuration = "/usr/share/doc/tlsprof/examples/domino.toml"
        assert configuration in files and configuration in page
        folder = "/usr/share/doc/tlsprof/guide/"
        packed = {path.removeprefix(folder).removesuffix(".gz") for path in files if path.startswith(folder)}
        assert packed == {path.name for path in (ROOT / "docs/guide").glob("*.md")} and folder in page


def test_nothing_is_anybody_elses_or_writable_by_all(architecture):
    packages = artifacts.deb(architecture), artifacts.rpm(architecture)
    for files in artifacts.deb_files(packages[0]), artifacts.rpm_files(packages[1]):
        assert len(files) > 40
        for path, listed in files.items():
            expected = "-rwxr-xr-x" if path == "/usr/bin/tlsprof" else "-rw-r--r--"
            assert (listed.mode, listed.owner) == (expected, "root/root"), path


def test_program_is_for_its_machine_and_runs_on_old_hosts(architecture, unpacked):
    program = unpacked / "usr/bin/tlsprof"
    header = artifacts.output("readelf", "--file-header", program)
    machine = {"x86_64": "X86-64", "aarch64": "AArch64"}[architecture]
    assert re.search(rf"Machine:.*{machine}", header), header
    assert artifacts.needed_glibc(program) <= OLDEST_GLIBC
    # libdl, libpthread and librt are parts of the C library until 2.34.
    libraries = {name.split(".")[0] for name in artifacts.needed_libraries(program)}
    libraries -= {"ld-linux-x86-64", "ld-linux-aarch64"}
    assert libraries <= {"libc", "libm", "libdl", "libpthread", "librt"}


def test_packages_ask_for_what_the_program_needs(architecture, unpacked):
    depends = artifacts.deb_field(artifacts.deb(architecture), "Depends")
    assert "libc6 (>= 2.28)" in depends
    # rpmbuild finds in the program what the .rpm asks for: no more than glibc's own libraries.
    newest = ".".join(map(str, artifacts.needed_glibc(unpacked / "usr/bin/tlsprof")))
    requires = rpm_lists(architecture, "--requires")
    assert f"libc.so.6(GLIBC_{newest})(64bit)" in requires
    libraries = {name for name in requires if re.match(r"(lib|ld-linux)", name)}
    assert all(re.search(r"\.so\.\d+\((GLIBC_[0-9.]+)?\)\(64bit\)$", name) for name in libraries)
    others = {name for name in requires - libraries if not name.startswith("rpmlib(")}
    known = {"/bin/sh", "systemd", "rtld(GNU_HASH)"}
    assert others <= known | rpm_lists(architecture, "--provides")


def test_rpm_of_rhel_8_can_unpack_it(architecture):
    requires = rpm_lists(architecture, "--requires")
    features = {name for name in requires if name.startswith("rpmlib(")}
    assert features <= {"rpmlib(CompressedFileNames)", "rpmlib(FileDigests)",
                        "rpmlib(PayloadFilesHavePrefix)"}  # fmt: skip
    query = ("rpm", "-qp", "--nosignature", "--qf", "%{PAYLOADCOMPRESSOR} %{ARCH}")
    assert artifacts.output(*query, artifacts.rpm(architecture)) == f"gzip {architecture}"


def rpm_lists(architecture: str, what: str) -> set[str]:
    """Names that the .rpm requires or provides, without versions."""
    package = artifacts.rpm(architecture)
    listed = artifacts.output("rpm", "-qp", "--nosignature", what, package)
    return {line.split()[0] for line in listed.splitlines()}


def test_no_path_of_the_machine_that_built_it(architecture, unpacked):
    program = (unpacked / "usr/bin/tlsprof").read_bytes()
    assert str(ROOT).encode() not in program
    assert b"/.cargo/registry" not in program
    bill = artifacts.one(f"tlsprof_*_{architecture}.cdx.json").read_text()
    assert str(ROOT) not in bill and "/.cargo/registry" not in bill


def test_configuration_is_kept_by_both(architecture):
    conffiles = artifacts.output("dpkg-deb", "-I", artifacts.deb(architecture), "conffiles")
    assert conffiles.split() == ["/etc/tlsprof/tlsprof.toml"]
    flags = artifacts.output(
        "rpm", "-qp", "--nosignature", "--qf", "[%{FILENAMES} %{FILEFLAGS:fflags}\n]",
        artifacts.rpm(architecture),
    )  # fmt: skip
    assert "/etc/tlsprof/tlsprof.toml cn" in flags.splitlines()


def test_man_pages_tell_every_command_and_flag(unpacked):
    pages = {page.name: gzip.open(page, "rt").read() for page in unpacked.rglob("man1/*.gz")}
    commands = {"agent", "doctor", "list", "report"}
    assert {f"tlsprof-{command}.1.gz" for command in commands} <= pages.keys()
    assert not [name for name in pages if "internal" in name]
    assert "\\-\\-cpu\\-breakdown" in pages["tlsprof-report.1.gz"]


def test_lintian_finds_nothing(architecture):
    done = subprocess.run(
        ["lintian", "--allow-root", "--no-cfg", "--fail-on=error,warning", "--tag-display-limit=0",
         "--suppress-tags-from-file", ROOT / "deploy/packages/lintian-suppressed",
         artifacts.deb(architecture)],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_program_starts_where_it_was_not_built(unpacked, architecture, tmp_path):
    """With Debian 11's C library (2.31, the oldest on its mirrors); for another machine in QEMU."""
    own = architecture == platform.machine()
    starter = older_loader(tmp_path / "bullseye") if own else emulator(architecture)
    said = artifacts.output(*starter, unpacked / "usr/bin/tlsprof", "--version")
    release = artifacts.deb_field(artifacts.deb(architecture), "Version").split("-")[0]
    assert said == f"tlsprof {release}\n"


def older_loader(folder: Path) -> list[object]:
    """A command that starts a program with an older C library than this machine's."""
    try:
        libraries = Suite("bullseye", folder).unpack(["libc6"]) / "lib"
    except Unobtainable as why:
        pytest.skip(str(why))
    (loader,) = libraries.glob("*/ld-2.31.so")
    return [loader, "--library-path", loader.parent]


def emulator(architecture: str) -> list[object]:
    """A command that starts a program for another machine, with Debian's C library for it."""
    root = Path(f"/usr/{architecture}-linux-gnu")
    program = shutil.which(f"qemu-{architecture}")
    if not program or not (root / "lib/libc.so.6").exists():
        pytest.skip(f"no qemu-{architecture}, or no C library in {root}")
    return [program, "-L", root]
