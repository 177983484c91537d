"""Network namespaces of the tests."""

from contextlib import contextmanager
from typing import Iterator

from .processes import run


@contextmanager
def namespace(name: str) -> Iterator[list[str]]:
    """A network namespace; yields the command that runs others in it."""
    inside = ["ip", "netns", "exec", name]
    assert run(["ip", "netns", "add", name]).child.returncode == 0
    try:
        assert run([*inside, "ip", "link", "set", "lo", "up"]).child.returncode == 0
        yield inside
    finally:
        run(["ip", "netns", "delete", name])
