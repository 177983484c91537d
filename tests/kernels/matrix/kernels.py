"""The kernels of the matrix, from Debian's packages.

A kernel that was fetched is kept in `CACHE`; remove that folder to fetch newer ones.
"""

import lzma
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator

from harness.paths import PROGRAMS
from harness.suites import Suite, Unobtainable

from .machines import AARCH64, MACHINE, X86_64, Machine

CACHE = PROGRAMS / "kernels"

MODULES = ("inet_diag", "tcp_diag")
"""What Debian builds as modules and tlsprof uses, in the order in which they are loaded."""

# From 6.19 on the image and the modules are in packages of their own; linux-image only
# depends on them. Debian's release candidates (7.3-rc7) do not match, nor do -dbg, -unsigned.
PACKAGE = re.compile(
    r"linux-(?P<kind>binary|image)-(?P<release>\d+\.\d+\.\d[^-]*(-\d+)?)-cloud-"
    + MACHINE.debian
)


@dataclass(frozen=True)
class Kernel:
    """A kernel by what it stands for: a series, or the newest one that is released."""

    name: str
    suites: tuple[str, ...]
    series: str = ""
    machine: Machine = X86_64


KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("5.10", ("bullseye",), "5.10."),
        Kernel("6.1", ("bookworm",), "6.1."),
        Kernel("6.12", ("trixie",), "6.12."),
        Kernel("6.18", ("trixie-backports",), "6.18."),
        Kernel("newest", ("trixie-backports", "sid")),
        Kernel("6.12-aarch64", ("trixie",), "6.12.", AARCH64),
    )
    if kernel.machine == MACHINE
}
"""Those for the machine that the program under test is for."""


@dataclass(frozen=True)
class Found:
    """A package that holds a kernel."""

    suite: Suite
    package: str
    release: str
    kind: str

    @property
    def packages(self) -> list[str]:
        """This one, and the one with the modules."""
        if self.kind == "image":
            return [self.package]
        return [self.package, self.package.replace("linux-binary", "linux-modules")]

    @property
    def order(self) -> tuple[list[int], bool]:
        """The later release is greater; of one release, the package with the image."""
        return [int(number) for number in re.findall(r"\d+", self.release)], self.kind == "binary"


@dataclass(frozen=True)
class Bootable:
    """A kernel that can be booted, by its name in the matrix."""

    name: str
    image: Path
    modules: Path
    """A folder with `MODULES`."""

    release: str


def bootable(kernel: Kernel) -> Bootable:
    """The kernel, fetched at the first use; raises `Unobtainable`."""
    kept = CACHE / kernel.name
    modules = kept / "modules"
    if not all(_module(modules, name).is_file() for name in MODULES):
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            fetched = _fetch(kernel, Path(folder))
            shutil.rmtree(kept, ignore_errors=True)  # kept without modules until November 2026
            fetched.rename(kept)  # all or nothing: a run that is cut short leaves no half
    return Bootable(kernel.name, kept / "vmlinuz", modules, (kept / "release").read_text().strip())


def _module(folder: Path, name: str) -> Path:
    return folder / f"{name}.ko"


def _fetch(kernel: Kernel, folder: Path) -> Path:
    found = max(_find(kernel, folder), key=lambda one: one.order, default=None)
    if found is None:
        raise Unobtainable(f"Debian {', '.join(kernel.suites)} has no such kernel")
    unpacked = found.suite.unpack(found.packages)
    fetched = folder / "kernel"
    (fetched / "modules").mkdir(parents=True)
    shutil.move(_only(found, unpacked, "vmlinuz*"), fetched / "vmlinuz")
    for name in MODULES:
        packed = _only(found, unpacked, f"{name}.ko*")
        module = lzma.decompress if packed.suffix == ".xz" else bytes
        _module(fetched / "modules", name).write_bytes(module(packed.read_bytes()))
    (fetched / "release").write_text(f"{found.release}\n")
    return fetched


def _only(found: Found, unpacked: Path, pattern: str) -> Path:
    """The one file of that name in its packages."""
    files = list(unpacked.rglob(pattern))
    if len(files) != 1:
        raise Unobtainable(f"{' and '.join(found.packages)} have {len(files)} files {pattern}")
    return files[0]


def _find(kernel: Kernel, folder: Path) -> Iterator[Found]:
    for name in kernel.suites:
        place = folder / name
        place.mkdir()
        suite = Suite(name, place, kernel.machine.debian)
        for package in suite.names("linux-"):
            match = PACKAGE.fullmatch(package)
            if match and match["release"].startswith(kernel.series):
                yield Found(suite, package, match["release"], match["kind"])
