"""Other versions of OpenSSL: packages of other Debian suites, unpacked beside the host's own.

What was fetched is kept in `CACHE`; remove it to fetch newer packages.
"""

import fcntl
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .paths import PROGRAMS, TESTS
from .suites import Suite

CACHE = PROGRAMS / "debian"

COMPILER_FLAGS = ["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]


@dataclass(frozen=True)
class Release:
    """A suite, and the packages of it that make a whole OpenSSL."""

    suite: str
    packages: tuple[str, ...]
    base: Optional["Release"] = None
    """Where the suite does not have all."""

    def unpack(self, folder: Path) -> Path:
        """Downloads and unpacks all packages; returns where, in the folder, which is empty."""
        own = folder / self.suite
        own.mkdir()
        unpacked = Suite(self.suite, own).unpack(self.packages)
        if self.base:
            shutil.copytree(self.base.unpack(folder), unpacked, symlinks=True, dirs_exist_ok=True)
        return unpacked


_LIBC = ("libc6", "libzstd1", "zlib1g")
_WITH_ITS_LIBC = ("libssl3t64", "libssl-dev", *_LIBC)

RELEASES = {
    "1.1.1": Release("bullseye", ("libssl1.1", "libssl-dev")),
    "3.5": Release("trixie", _WITH_ITS_LIBC),
    "3.6": Release("sid", _WITH_ITS_LIBC),
    "4.0": Release("experimental", ("libssl4", "libssl-dev"), base=Release("sid", _LIBC)),
}
"""By the version of OpenSSL that the suite has, or had when this was written."""


@dataclass(frozen=True)
class OpenSsl:
    """An unpacked OpenSSL to build the programs of the tests with."""

    root: Path

    @property
    def version(self) -> str:
        """As its header states it, such as 1.1.1w."""
        text = self._only("usr/include/**/openssl/opensslv.h").read_text()
        match = re.search(r'OPENSSL_VERSION_(?:TEXT\s+"OpenSSL |STR\s+")([^ "]+)', text)
        assert match, text
        return match.group(1)

    def build(self, program: str) -> Path:
        """Builds a program of tests/servers that uses these libraries, whoever starts it."""
        target = self.root.with_name(f"{self.root.name}-programs") / program
        include = self.root / "usr" / "include"
        compiler = [*COMPILER_FLAGS, f"-I{include}", f"-I{include / self._libraries.name}"]
        make = ["make", "--silent", "-C", TESTS, f"OUT={target.parent}", target]
        make += [f"CFLAGS={' '.join(compiler)}", f"LDLIBS={' '.join(self._linker_flags())}"]
        with open(CACHE / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            subprocess.run(make, check=True)
        return target

    @property
    def _libraries(self) -> Path:
        return self._only("usr/lib/*/libssl.so").parent

    def _linker_flags(self) -> list[str]:
        flags = [f"-L{self._libraries}", "-lssl", "-lcrypto", "-pthread", "-ldl"]
        # With the old kind of tag its libraries find each other by it, too.
        flags += [f"-Wl,-rpath,{self._libraries}", "-Wl,--disable-new-dtags"]
        loaders = sorted(self._libraries.glob("ld-linux-*.so.*"))
        if loaders:
            # The C library came with it because the host's may be too old; the
            # linker looks at the host's, and would miss symbols.
            flags += [f"-Wl,--dynamic-linker={loaders[0]}", "-Wl,--allow-shlib-undefined"]
        return flags

    @property
    def libssl(self) -> Path:
        return self._only("usr/lib/*/libssl.so.*")

    def _only(self, pattern: str) -> Path:
        found = sorted(self.root.glob(pattern))
        assert found, f"no {pattern} in {self.root}"
        return found[0]


def openssl(version: str) -> OpenSsl:
    """An OpenSSL of `RELEASES`, fetched at the first use; raises `Unobtainable`."""
    release = RELEASES[version]
    root = CACHE / release.suite
    CACHE.mkdir(parents=True, exist_ok=True)
    # Another worker may want it, too.
    with open(CACHE / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                unpacked = release.unpack(Path(folder))
                unpacked.rename(root)  # all or nothing: a run that is cut short leaves no half
    return OpenSsl(root)
