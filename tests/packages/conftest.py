"""Fixtures: the packages, and a machine to install them on."""

import os
import platform
import shutil
import subprocess
from typing import Iterator

import pytest

from harness.suites import Unobtainable
from installation import artifacts
from installation.machine import Machine, base, booted


@pytest.fixture(scope="session", params=artifacts.MACHINES)
def architecture(request) -> str:
    """Each kind of machine that packages are made for."""
    return request.param


@pytest.fixture(scope="session")
def machine(tmp_path_factory) -> Iterator[Machine]:
    """A fresh Debian of this host's kind that has booted; one for all tests."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a machine in a container")
    try:
        packed = base()
    except Unobtainable as why:
        pytest.skip(f"no root file system can be had: {why}")
    folder = tmp_path_factory.mktemp("machine")
    root = folder / "root"
    root.mkdir()
    subprocess.run(["tar", "--extract", "--file", packed, "--directory", root], check=True)
    with booted(root, folder / "console") as one:
        yield one
    shutil.rmtree(root)  # pytest keeps the folders of three runs


@pytest.fixture
def installed(machine) -> Iterator[Machine]:
    """The machine with the package installed, and without it afterwards."""
    machine.run("dpkg", "--install", machine.give(artifacts.deb(platform.machine())))
    yield machine
    machine.run("dpkg", "--purge", "tlsprof")
    machine.attempt("systemctl", "stop", "packaged.service")  # there is one in one test only
