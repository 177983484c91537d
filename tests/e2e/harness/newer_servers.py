"""Servers of newer Debian suites, unpacked beside the host's own and run with their own libraries.

What was fetched is kept in `debian.CACHE`; remove it to fetch newer packages.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from .debian import CACHE
from .suites import Suite

PACKAGES = {
    "trixie": ("nginx", "apache2-bin", "haproxy", "stunnel4", "nodejs"),
    "sid": ("nginx",),
}
"""By suite: trixie has OpenSSL 3.5, the first with ML-KEM; sid has nginx 1.30."""


@dataclass(frozen=True)
class Servers:
    """The programs of a suite."""

    root: Path

    def command(self, program: str) -> list[Path | str]:
        """How to run a program, such as usr/sbin/nginx; its arguments follow."""
        (loader,) = self.root.glob("usr/lib/*/ld-linux-*.so.*")
        return [loader, "--library-path", str(loader.parent), self.root / program]

    def inside(self, program: str) -> list[Path | str]:
        """The same with the suite's files as the root of the file system; takes root."""
        (loader,) = self.root.glob("usr/lib/*/ld-linux-*.so.*")
        libraries = f"/{loader.parent.relative_to(self.root)}"
        return ["chroot", self.root, f"{libraries}/{loader.name}", "--library-path", libraries, program]


def servers(suite: str) -> Servers:
    """The servers of a suite, fetched at the first use; raises `Unobtainable`."""
    root = CACHE / f"{suite}-servers"
    if not root.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            packages = Suite(suite, Path(folder))
            for package in PACKAGES[suite]:
                unpacked = packages.unpack_all([package])
            unpacked.rename(root)  # all or nothing: a run that is cut short leaves no half
    return Servers(root)
