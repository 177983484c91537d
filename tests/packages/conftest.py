"""Fixtures: the packages, and a machine to install them on."""

import os
import subprocess
from pathlib import Path
from typing import Iterator

import pytest

from harness.suites import Unobtainable
from installation import artifacts
from installation.machine import Machine, base, booted


@pytest.fixture(scope="session", params=artifacts.MACHINES)
def architecture(request) -> str:
    """Each kind of machine that packages are made for."""
    return request.param


@pytest.fixture
def debian_root(tmp_path) -> Path:
    """The root file system of a fresh Debian."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a machine in a container")
    try:
        packed = base()
    except Unobtainable as why:
        pytest.skip(f"no root file system can be had: {why}")
    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["tar", "--extract", "--file", packed, "--directory", root], check=True)
    return root


@pytest.fixture
def machine(debian_root, tmp_path) -> Iterator[Machine]:
    """A machine of this host's kind that has booted."""
    with booted(debian_root, tmp_path / "console") as one:
        yield one
