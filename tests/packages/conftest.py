"""Fixtures: the packages, and a machine to install them on."""

import platform
from typing import Iterator

import pytest

from installation import artifacts
from installation.machine import Machine, booted, unpacked_root


@pytest.fixture(scope="session", params=artifacts.made())
def architecture(request) -> str:
    """Each kind of machine that packages were made for."""
    return request.param


@pytest.fixture(scope="session")
def machine(tmp_path_factory) -> Iterator[Machine]:
    """A fresh Debian of this host's kind that has booted; one for all tests."""
    folder = tmp_path_factory.mktemp("machine")
    with unpacked_root(folder) as root, booted(root, folder / "console") as one:
        yield one


@pytest.fixture
def installed(machine) -> Iterator[Machine]:
    """The machine with the package installed, and without it afterwards."""
    machine.run("dpkg", "--install", machine.give(artifacts.deb(platform.machine())))
    yield machine
    machine.run("dpkg", "--purge", "tlsprof")
    machine.attempt("systemctl", "stop", "packaged.service")  # there is one in one test only
