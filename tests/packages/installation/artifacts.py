"""What `make packages` made."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.paths import ROOT

FOLDER = Path(os.environ.get("TLSPROF_PACKAGES", ROOT / "target" / "packages"))

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Kinds of machine, as Rust and RPM call them, and as Debian does."""


def made() -> list[str]:
    """Machines that `make packages` was asked for; all, which fails in each test, if it never ran."""
    return [name for name in MACHINES if any(FOLDER.glob(f"*{name}*"))] or list(MACHINES)


@dataclass(frozen=True)
class Listed:
    """A file of a package."""

    mode: str
    owner: str


def one(pattern: str) -> Path:
    """The file of that name; there must be no other of another version."""
    found = list(FOLDER.glob(pattern))
    assert len(found) == 1, f"{len(found)} files {FOLDER}/{pattern}: run `make packages`"
    return found[0]


def deb(machine: str) -> Path:
    return one(f"tlsprof_*_{MACHINES[machine]}.deb")


def rpm(machine: str) -> Path:
    return one(f"tlsprof-*.{machine}.rpm")


def tarballs() -> list[str]:
    """Machines for which there is a static program in a tarball."""
    return [name for name in MACHINES if any(FOLDER.glob(f"tlsprof-*-{name}.tar.gz"))]


def tarball(machine: str) -> Path:
    return one(f"tlsprof-*-{machine}.tar.gz")


def output(*command: object) -> str:
    """What a command prints; it must succeed."""
    return subprocess.run(
        [str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def deb_field(package: Path, field: str) -> str:
    return output("dpkg-deb", "--field", package, field).strip()


def deb_files(package: Path) -> dict[str, Listed]:
    """Files by path, without folders."""
    files = {}
    for line in output("dpkg-deb", "--contents", package).splitlines():
        mode, owner, _, _, _, path = line.split(None, 5)
        if not mode.startswith("d"):
            files[path.removeprefix(".")] = Listed(mode, owner.replace("0/0", "root/root"))
    return files


def rpm_files(package: Path) -> dict[str, Listed]:
    """Files by path, without folders."""
    query = "[%{FILENAMES} %{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME}\n]"
    files = {}
    for line in output("rpm", "-qp", "--nosignature", "--qf", query, package).splitlines():
        path, mode, owner = line.rsplit(None, 2)
        if not mode.startswith("d"):
            files[path] = Listed(mode, owner)
    return files


def needed_libraries(program: Path) -> set[str]:
    """Shared libraries that the program names."""
    text = output("readelf", "--dynamic", "--wide", program)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def needed_glibc(program: Path) -> tuple[int, ...]:
    """The newest version of the C library that the program asks for."""
    text = output("readelf", "--version-info", "--wide", program)
    versions = re.findall(r"Name: GLIBC_([0-9.]+)", text)
    assert versions, text
    return max(tuple(int(part) for part in version.split(".")) for version in versions)


def newer(package: Path, version: str, folder: Path, conffile: str, text: str) -> Path:
    """The same package as a later release, in which a configuration file has other text."""
    unpacked = folder / "newer"
    output("dpkg-deb", "--raw-extract", package, unpacked)
    control = unpacked / "DEBIAN" / "control"
    renamed = re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text())
    control.write_text(renamed)
    (unpacked / conffile.lstrip("/")).write_text(text)
    built = folder / f"newer_{version}.deb"
    output("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", unpacked, built)
    return built
