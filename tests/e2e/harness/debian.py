"""Other versions of OpenSSL: packages of other Debian suites, unpacked beside the host's own.

The machine's own package sources are asked for another suite, with an apt
configuration of its own: nothing is installed, and the host's apt does not
notice. What was fetched is kept in `CACHE`; remove it to fetch newer packages.
"""

import platform
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .paths import PROGRAMS, TESTS

CACHE = PROGRAMS / "debian"

SOURCES = Path("/etc/apt")
APT_SECONDS = 120.0
APT_OPTIONS = {
    "Acquire::Retries": "1",
    "Acquire::http::Timeout": "20",
    "Acquire::Languages": "none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::IndexTargets::deb-src::Sources::DefaultEnabled": "false",
    "APT::Update::Error-Mode": "any",  # by itself it only warns when it is offline
    "APT::Sandbox::User": "root",  # the folders here are closed to apt's own user
}

COMPILER_FLAGS = ["-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror"]


class Unobtainable(Exception):
    """The packages cannot be had here: no network, no such suite, no Debian."""


@dataclass(frozen=True)
class Release:
    """A suite, and the packages of it that make a whole OpenSSL."""

    suite: str
    packages: tuple[str, ...]


_WITH_ITS_LIBC = ("libc6", "libssl3t64", "libssl-dev", "libzstd1", "zlib1g")

RELEASES = {
    "1.1.1": Release("bullseye", ("libssl1.1", "libssl-dev")),
    "3.5": Release("trixie", _WITH_ITS_LIBC),
    "3.6": Release("sid", _WITH_ITS_LIBC),
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
        subprocess.run(make, check=True)
        return target

    @property
    def _libraries(self) -> Path:
        return self._only("usr/lib/*/libssl.so").parent

    def _linker_flags(self) -> list[str]:
        flags = [f"-L{self._libraries}", "-lssl", "-lcrypto", "-pthread"]
        # With the old kind of tag its libraries find each other by it, too.
        flags += [f"-Wl,-rpath,{self._libraries}", "-Wl,--disable-new-dtags"]
        loaders = sorted(self._libraries.glob("ld-linux-*.so.*"))
        if loaders:
            # The C library came with it because the host's may be too old; the
            # linker looks at the host's, and would miss symbols.
            flags += [f"-Wl,--dynamic-linker={loaders[0]}", "-Wl,--allow-shlib-undefined"]
        return flags

    def _only(self, pattern: str) -> Path:
        found = sorted(self.root.glob(pattern))
        assert found, f"no {pattern} in {self.root}"
        return found[0]


def openssl(version: str) -> OpenSsl:
    """An OpenSSL of `RELEASES`, fetched at the first use."""
    release = RELEASES[version]
    root = CACHE / release.suite
    if not root.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            unpacked = _fetch(release, Path(folder))
            unpacked.rename(root)  # all or nothing: a run that is cut short leaves no half
    return OpenSsl(root)


def _fetch(release: Release, folder: Path) -> Path:
    """Downloads and unpacks the packages; returns where."""
    options = _apt_options(release.suite, folder)
    _run(release, ["apt-get", "update", *options], folder)
    _run(release, ["apt-get", "download", *options, *release.packages], folder)
    unpacked = folder / "root"
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, unpacked], check=True)
    return unpacked


def _run(release: Release, command: list[str], folder: Path) -> None:
    what = f"{', '.join(release.packages)} of Debian {release.suite}"
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=APT_SECONDS)
    except FileNotFoundError as error:
        raise Unobtainable(f"{what}: this machine has no {error.filename}") from None
    except subprocess.TimeoutExpired:
        raise Unobtainable(f"{what}: {' '.join(command[:2])} took over {APT_SECONDS:g} s") from None
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
        raise Unobtainable(f"{what}: {errors[0] if errors else done.stderr}")


def _apt_options(suite: str, folder: Path) -> list[str]:
    """Options that make apt look at one suite and at nothing that the host has."""
    parts = folder / "sources"
    for made in (parts, folder / "lists" / "partial", folder / "cache" / "archives" / "partial"):
        made.mkdir(parents=True)
    _write_sources(suite, parts)
    (folder / "status").touch()
    options = {
        **APT_OPTIONS,
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": parts,
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::Status": folder / "status",  # else installed packages pass for newer ones
        "Dir::Cache": folder / "cache",
    }
    return [argument for key, value in options.items() for argument in ("-o", f"{key}={value}")]


def _write_sources(suite: str, parts: Path) -> None:
    """The host's own sources, rewritten for another suite."""
    codename = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    written = 0
    for source in [SOURCES / "sources.list", *sorted((SOURCES / "sources.list.d").glob("*"))]:
        rewrite = {".list": _rewrite_lines, ".sources": _rewrite_stanzas}.get(source.suffix)
        text = rewrite(source.read_text(), codename, suite) if rewrite and source.is_file() else ""
        if text:
            (parts / source.name).write_text(text)
            written += 1
    if not written:
        raise Unobtainable(f"Debian {suite}: no package source of this machine is for {codename!r}")


def _rewrite_lines(text: str, codename: str, suite: str) -> str:
    """`deb [options] URI suite components`, as in sources.list(5)."""
    rewritten = []
    for line in text.splitlines():
        match = re.fullmatch(r"(deb\s+(?:\[[^]]*\]\s+)?\S+\s+)(\S+)(\s.*)", line)
        other = match and _other_suite(match.group(2), codename, suite)
        if match and other:
            rewritten.append(f"{match.group(1)}{other}{match.group(3)}\n")
    return "".join(rewritten)


def _rewrite_stanzas(text: str, codename: str, suite: str) -> str:
    """Stanzas with a field `Suites:`; those for nothing that the other suite has are dropped."""
    rewritten = []
    for stanza in re.split(r"\n\s*\n", text):
        match = re.search(r"^Suites:(.*)$", stanza, re.MULTILINE)
        names = match.group(1).split() if match else []
        others = [other for name in names if (other := _other_suite(name, codename, suite))]
        if match and others:
            field = f"Suites: {' '.join(others)}"
            rewritten.append(f"{stanza[: match.start()]}{field}{stanza[match.end() :]}")
    return "\n\n".join(rewritten)


def _other_suite(name: str, codename: str, suite: str) -> Optional[str]:
    if name == codename:
        return suite
    if name == f"{codename}-security" and suite != "sid":
        return f"{suite}-security"
    return None
