"""The guest's file system: busybox, tlsprof, the test programs, and what they are linked to."""

import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

from harness.certificates import Certificate
from harness.load import Load
from harness.paths import TLSPROF

from .kernels import MODULES, Bootable
from .machines import MACHINE, X86_64
from .programs import BUSYBOX, Programs

GUEST = Path(__file__).resolve().parents[1] / "guest"

SHARED = ("init", "functions")
SCRIPTS = ("checks", "softirqs", "interrupts", "survival", "jumps", "leaves", "lockdown")

SELFTIMED_PORT = 4433
NGINX_PORT = 8080
"""Any two: nothing else listens in the guest. guest/checks has them, too."""

NGINX_BACKLOG = 37
"""Not what nginx asks for by itself, nor the kernel's limit."""


@dataclass(frozen=True)
class Workload:
    """What is done in the guest while it is profiled."""

    handshakes: Sequence[Load]
    """With the self-timed server."""

    requests: int
    """To nginx, without TLS."""

    requests_per_connection: int
    """After so many nginx closes the connection."""

    hardy: Sequence[Load]
    """Handshakes with the self-timed server in which neither end minds the time of day."""

    def scripts(self) -> dict[str, str]:
        """As scripts of the guest, by name."""
        requests = f"ab -q -k -c 1 -n {self.requests} http://127.0.0.1:{NGINX_PORT}/"
        return {
            "load": _script([*_commands(self.handshakes), requests]),
            "hardy": _script(_commands(self.hardy)),
        }


def _commands(loads: Sequence[Load]) -> list[str]:
    arguments = [load.command(SELFTIMED_PORT)[1:] for load in loads]
    return [shlex.join(["loadgen", *one]) for one in arguments]


def _script(commands: list[str]) -> str:
    return "\n".join(["#!/bin/sh", "set -e", *commands, ""])


def build(
    folder: Path, programs: Programs, certificate: Certificate, workload: Workload
) -> Path:
    """Builds the initramfs in an empty folder; returns its file."""
    root = folder / "root"
    for made in ("bin", "etc", "dev", "proc", "sys", "run", "tmp"):
        (root / made).mkdir(parents=True)
    for program in (*programs.files, _without_debug_information(TLSPROF, folder)):
        _add_program(root, program, programs)
    for script in (*SHARED, *SCRIPTS):
        shutil.copy(GUEST / script, root / script)
    for name, text in workload.scripts().items():
        _write_script(root / name, text)
    shutil.copy(GUEST / "weaker.toml", root / "etc" / "weaker.toml")
    shutil.copy(certificate.cert, root / "etc" / "cert.pem")
    shutil.copy(certificate.key, root / "etc" / "key.pem")
    values = {
        "NGINX_PORT": NGINX_PORT,
        "NGINX_BACKLOG": NGINX_BACKLOG,
        "REQUESTS_PER_CONNECTION": workload.requests_per_connection,
    }
    config = (GUEST / "nginx.conf").read_text()
    for name, value in values.items():
        config = config.replace(name, str(value))
    (root / "etc" / "nginx.conf").write_text(config)
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    return _pack(root, folder / "initramfs.cpio")


def with_modules(initramfs: Path, kernel: Bootable, folder: Path) -> Path:
    """The same file system with a kernel's modules; returns a file in the folder.

    One archive may follow another (Documentation/driver-api/early-userspace/buffer-format.rst).
    """
    root, whole = folder / "root", folder / "initramfs"
    (root / "modules").mkdir(parents=True)
    for number, name in enumerate(MODULES):
        shutil.copy(kernel.modules / f"{name}.ko", root / "modules" / f"{number}-{name}.ko")
    with open(whole, "wb") as output:
        for archive in (initramfs, _pack(root, folder / "modules.cpio")):
            with open(archive, "rb") as one:
                shutil.copyfileobj(one, output)
    return whole


def _without_debug_information(program: Path, folder: Path) -> Path:
    """A debug build is 140 MB, four fifths of which nothing reads in the guest. Those for other
    machines are built without."""
    if MACHINE != X86_64:
        return program
    stripped = folder / "tlsprof"  # whatever the binary under test is called
    subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
    return stripped


def _add_program(root: Path, program: Path, programs: Programs) -> None:
    shutil.copy(program, root / "bin" / program.name)
    for library in programs.libraries(program):
        inside = library.relative_to("/")
        (root / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(programs.root / inside, root / inside)


def _write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _pack(root: Path, archive: Path) -> Path:
    names = ["."] + sorted(str(path.relative_to(root)) for path in root.rglob("*"))
    with open(archive, "wb") as output:
        subprocess.run(
            [BUSYBOX, "cpio", "-o", "-H", "newc", "-R", "0:0"],
            cwd=root,
            input="".join(f"{name}\n" for name in names).encode(),
            stdout=output,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return archive
