"""Servers that start and stop side by side, each a service of its own in one profile of them all."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Callable, Hashable, Iterator, Mapping, TypeVar

Key = TypeVar("Key", bound=Hashable)
Started = TypeVar("Started")

AT_ONCE = 8
"""Servers that start at the same time: a timeout of a start holds for a machine with few cores."""


@contextmanager
def together(starts: Mapping[Key, AbstractContextManager[Started]]) -> Iterator[dict[Key, Started]]:
    """Enters all of the context managers at the same time, and leaves them so."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        entering = {key: pool.submit(start.__enter__) for key, start in starts.items()}
    entered = [starts[key] for key, future in entering.items() if not future.exception()]
    try:
        yield {key: future.result() for key, future in entering.items()}
    finally:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda start: start.__exit__(None, None, None), entered))


def side_by_side(run: Callable[[Key], Any], keys: Any, at_once: int = 2) -> dict[Key, Any]:
    """The results of `run` for each key; so many of them run at the same time."""
    with ThreadPoolExecutor(at_once) as pool:
        return dict(zip(keys, pool.map(run, keys)))


def own_folder(folder: Path, *words: object) -> Path:
    """A folder that every user may look into; by its name, programs in it are services of their own."""
    made = folder / "-".join(map(str, words))
    made.mkdir(mode=0o755)
    return made
