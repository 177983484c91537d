"""The programs that run in a guest: this host's, or those that Debian has for another machine."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.paths import PROGRAMS, ROOT, TESTS
from harness.suites import Suite, Unobtainable, own_suite

from .machines import MACHINE, X86_64

BUSYBOX = Path("/bin/busybox")

BUILT = ("loadgen", "selftimed")
"""Test programs."""

PACKAGES = ("busybox-static", "nginx", "apache2-utils", "libssl-dev")
"""With `busybox`, `nginx`, `ab`, and what the test programs are linked to."""

PYTHON = ROOT / "target/tools/python/bin/python"
"""Of deploy/packages/tools.sh: with zig, whose compiler is one for any machine."""


@dataclass(frozen=True)
class Programs:
    """Programs and where they come from."""

    files: tuple[Path, ...]

    root: Path
    """The root folder of the libraries that they are linked to."""

    loader: tuple[object, ...]
    """A command that lists the libraries of a program."""

    def libraries(self, program: Path) -> list[Path]:
        """By their paths in the guest; none of a static program."""
        command = [*self.loader, program]
        listed = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        # "libm.so.6 => /lib/libm.so.6 (0x7f..)". The loader tells of itself where it was started.
        found = re.findall(r"(?:=> |^\t)(/\S+) \(0x", listed.stdout, re.MULTILINE)
        return [Path("/") / Path(path.removeprefix(str(self.root))) for path in found]


def programs(folder: Path) -> Programs:
    """For the machine that is tested; the folder is empty, and used up by this.

    Raises `Unobtainable`.
    """
    return _of_this_host() if MACHINE == X86_64 else _of_debian(folder)


def _of_this_host() -> Programs:
    _make(PROGRAMS)
    installed = [_which(name) for name in ("nginx", "ab")]
    built = [PROGRAMS / name for name in BUILT]
    return Programs((BUSYBOX, *built, *installed), Path("/"), ("ldd",))


def _which(name: str) -> Path:
    found = shutil.which(name)
    assert found, f"{name} is not installed"
    return Path(found)


def _of_debian(folder: Path) -> Programs:
    emulator = shutil.which(f"qemu-{MACHINE.name}")
    if not emulator or not PYTHON.is_file():
        missing = PYTHON if emulator else f"qemu-{MACHINE.name}"
        raise Unobtainable(f"programs for {MACHINE.name}: there is no {missing}")
    root = _debian()
    libraries, headers = root / f"usr/lib/{MACHINE.name}-linux-gnu", root / "usr/include"
    compiler = [PYTHON, "-m", "ziglang", "cc", "-target", f"{MACHINE.name}-linux-gnu"]
    compiler += ["-isystem", headers, "-isystem", headers / libraries.name]
    # Debian's C library may be newer than the one that zig links to.
    linked = ["-Wl,--allow-shlib-undefined", f"-L{libraries}", "-lssl", "-lcrypto"]
    _make(folder, CC=compiler, LDLIBS=linked)
    built = [folder / name for name in BUILT]
    installed = [root / name for name in ("bin/busybox", "usr/sbin/nginx", "usr/bin/ab")]
    (loader,) = root.glob("lib/ld-linux-*")
    return Programs((*built, *installed), root, (emulator, "-L", root, loader, "--list"))


def _make(folder: Path, **variables: list[object]) -> None:
    command = ["make", "--silent", "-C", str(TESTS), f"OUT={folder}"]
    command += [f"{name}={' '.join(map(str, words))}" for name, words in variables.items()]
    subprocess.run([*command, *(f"{folder}/{name}" for name in BUILT)], check=True)


def _debian() -> Path:
    """The root folder of `PACKAGES`, fetched at the first use."""
    kept = PROGRAMS / f"debian-{MACHINE.name}"
    if not kept.is_dir():
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=PROGRAMS) as folder:
            suite = Suite(own_suite(), Path(folder), MACHINE.debian)
            suite.unpack_all(PACKAGES).rename(kept)
    return kept
