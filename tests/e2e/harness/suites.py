"""Packages of other Debian suites, unpacked without being installed.

The machine's own package sources are asked for another suite, with an apt
configuration of its own: nothing is installed, and the host's apt does not
notice.
"""

import platform
import re
import subprocess
from pathlib import Path
from typing import Optional, Sequence

SOURCES = Path("/etc/apt")
APT_SECONDS = 600.0
APT_OPTIONS = {
    "Acquire::Retries": "1",
    "Acquire::http::Timeout": "20",
    "Acquire::Languages": "none",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
    "Acquire::IndexTargets::deb-src::Sources::DefaultEnabled": "false",
    "APT::Update::Error-Mode": "any",  # by itself it only warns when it is offline
    "APT::Sandbox::User": "root",  # the folders here are closed to apt's own user
}


class Unobtainable(Exception):
    """The packages cannot be had here: no network, no such suite, no Debian."""


class Suite:
    """The packages of a suite, as they are now; `folder` is empty, and used up by this."""

    def __init__(self, name: str, folder: Path, architecture: Optional[str] = None):
        """Reads the suite's list of packages; raises `Unobtainable`.

        For another architecture than the host's, which dpkg need not know of.
        """
        self.name = name
        self._folder = folder
        self._options = _apt_options(name, folder, architecture)
        self._run("the packages", ["apt-get", "update"])

    def names(self, prefix: str) -> list[str]:
        """Names of the packages that begin with `prefix`."""
        return self._run(f"{prefix}*", ["apt-cache", "pkgnames"], prefix).split()

    def unpack(self, packages: Sequence[str]) -> Path:
        """Downloads and unpacks packages; returns where, in the folder."""
        self._run(", ".join(packages), ["apt-get", "download"], *packages)
        return self._unpack_in(self._folder)

    def unpack_all(self, packages: Sequence[str]) -> Path:
        """The same of these packages and all that they depend on."""
        command = ["apt-get", "install", "--download-only", "--no-install-recommends", "--yes"]
        self._run(", ".join(packages), command, *packages)
        return self._unpack_in(self._folder / "cache" / "archives")

    def _unpack_in(self, folder: Path) -> Path:
        unpacked = self._folder / "root"
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, unpacked], check=True)
        return unpacked

    def _run(self, packages: str, command: list[str], *arguments: str) -> str:
        what = f"{packages} of Debian {self.name}"
        whole = [*command, *self._options, *arguments]
        try:
            done = subprocess.run(
                whole, cwd=self._folder, capture_output=True, text=True, timeout=APT_SECONDS
            )
        except FileNotFoundError as error:
            raise Unobtainable(f"{what}: this machine has no {error.filename}") from None
        except subprocess.TimeoutExpired:
            raise Unobtainable(f"{what}: {' '.join(command)} took over {APT_SECONDS:g} s") from None
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
            raise Unobtainable(f"{what}: {errors[0] if errors else done.stderr}")
        return done.stdout


def own_suite() -> str:
    """The suite of the machine's own release; empty if it has none."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def _apt_options(suite: str, folder: Path, architecture: Optional[str]) -> list[str]:
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
    if architecture:
        options |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    return [argument for key, value in options.items() for argument in ("-o", f"{key}={value}")]


def _write_sources(suite: str, parts: Path) -> None:
    """The host's own sources, rewritten for another suite."""
    codename = own_suite()
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
    has_security = suite not in ("sid", "experimental") and not suite.endswith("-backports")
    if name == f"{codename}-security" and has_security:
        return f"{suite}-security"
    return None
