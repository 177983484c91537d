"""Where a program spends its user time, with the machine code there: what tlsprof sees of it."""

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CODE_LENGTH = 128  # that the fingerprint looks at, before the sampled instruction and from it on
FREQUENCY = 1999

_MAPPING = re.compile(
    r" (\d+)/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: \S+ (/.*)$"
)
_SAMPLE = re.compile(r"^\s*(\d+)\s+([0-9a-f]+)\s*$")


@dataclass(frozen=True)
class Place:
    """An address in a file that is mapped to be run."""

    path: str
    offset: int

    def code(self) -> tuple[bytes, bytes]:
        """What is before it, and what is there, at most `CODE_LENGTH` bytes each."""
        first = max(0, self.offset - CODE_LENGTH)
        with Path(self.path).open("rb") as image:
            image.seek(first)
            return image.read(self.offset - first), image.read(CODE_LENGTH)


def record(command: Sequence[str]) -> Counter[Place]:
    """Runs `command`, for as long as it likes to, and counts where it and its children were.

    Samples outside of files (the vDSO, code made at run time) are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "perf.data"
        perf = ["perf", "record", "-q", "-o", data, "-e", "cpu-clock:u", "-F", str(FREQUENCY)]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        subprocess.run([*perf, "--", *command], check=False, **quiet, stderr=subprocess.DEVNULL)
        script = ["perf", "script", "-i", data, "-F", "pid,ip", "--show-mmap-events"]
        output = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    return Counter(_places(output.splitlines()))


def _places(lines: list[str]) -> Iterator[Place]:
    mappings: dict[str, list[tuple[int, int, int, str]]] = {}
    for line in lines:
        if mapping := _MAPPING.search(line):
            process, start, size, offset, path = mapping.groups()
            entry = (int(start, 16), int(size, 16), int(offset, 16), path)
            mappings.setdefault(process, []).insert(0, entry)
        elif sample := _SAMPLE.match(line):
            process, address = sample.group(1), int(sample.group(2), 16)
            for start, size, offset, path in mappings.get(process, []):
                if start <= address < start + size and Path(path).is_file():
                    yield Place(path, address - start + offset)
                    break
