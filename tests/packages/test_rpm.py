"""The .rpm, installed in a root folder of a Debian: its scripts run there, without systemd."""

import platform
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from installation import artifacts
from installation.machine import unpacked_root

CONFIG = "etc/tlsprof/tlsprof.toml"


@pytest.fixture
def root(tmp_path) -> Iterator[Path]:
    with unpacked_root(tmp_path) as one:
        yield one


def rpm(root: Path, *arguments: object) -> None:
    """Runs rpm on the root folder, which has no packages that it could depend on."""
    command = ["rpm", "--root", root, "--nosignature", "--nodeps", "--noplugins", *arguments]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0 and "scriptlet failed" not in done.stderr, done.stderr


def test_install_reinstall_and_erase(root):
    package = artifacts.rpm(platform.machine())
    rpm(root, "--install", package)
    assert "\ntlsprof:" in (root / "etc/passwd").read_text()
    assert (root / "usr/lib/systemd/system/tlsprof.service").is_file()
    config = root / CONFIG
    config.write_text("# edited\n")
    rpm(root, "--upgrade", "--replacepkgs", package)
    assert config.read_text() == "# edited\n"
    rpm(root, "--erase", "tlsprof")
    assert not config.exists() and (root / f"{CONFIG}.rpmsave").read_text() == "# edited\n"
    files = artifacts.rpm_files(package)
    assert not [path for path in files if (root / path.lstrip("/")).exists()]
