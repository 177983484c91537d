"""Copies of the OpenSSL library: for processes of their own inode, and broken ones."""

import random
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Iterable

ELF64_HEADER = 64
SECTION_HEADERS_OFFSET = 0x28  # e_shoff, 8 bytes
SECTION_HEADER_COUNT = 0x3C  # e_shnum, 2 bytes
PROGRAM_HEADERS_OFFSET = 0x20  # e_phoff, 8 bytes
PROGRAM_HEADER_COUNT = 0x38  # e_phnum, 2 bytes
SECTION_DYNSYM = 11
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")

PROBED = ("libcrypto.so", "libssl.so", "libgnutls.so")


def loaded(program: str | Path) -> dict[str, Path]:
    """The libraries that the dynamic loader gives to `program`, by name."""
    output = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    return {name: Path(path) for name, path in re.findall(r"(\S+) => (/\S+)", output)}


def loaded_by(program: str | Path, name: str) -> Path:
    """Path of the library `name` that the dynamic loader gives to `program`."""
    found = loaded(program)
    assert name in found, found
    return found[name]


def copy_openssl(program: str | Path, folder: Path) -> dict[str, str]:
    """Copies libssl and libcrypto of `program`; returns the environment that uses the copies."""
    return _copies((loaded_by(program, name) for name in ("libssl.so.3", "libcrypto.so.3")), folder)


def copy_probed(program: str | Path, folder: Path) -> dict[str, str]:
    """The same with all of its libraries that may be probed. For a program that switches stacks: no return probe is
    placed in a file that it maps, whoever else maps it."""
    return _copies((path for name, path in loaded(program).items() if name.startswith(PROBED)), folder)


def _copies(libraries: Iterable[Path], folder: Path) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    for library in libraries:
        shutil.copy(library.resolve(), folder / library.name)
    return {"LD_LIBRARY_PATH": str(folder)}


def hostile_images(library: Path, folder: Path, fuzzed: int = 16) -> list[Path]:
    """Broken copies of a library, each with the library's own name in a folder of its own."""
    whole = library.read_bytes()
    images = {
        "empty-sections": _patched(whole, SECTION_HEADER_COUNT, b"\0\0"),
        "sections-beyond": _patched(whole, SECTION_HEADERS_OFFSET, b"\xff" * 8),
        "many-sections": _patched(whole, SECTION_HEADER_COUNT, b"\xff\xff"),
        "segments-beyond": _patched(whole, PROGRAM_HEADERS_OFFSET, b"\xf0" + b"\xff" * 7),
        "many-segments": _patched(whole, PROGRAM_HEADER_COUNT, b"\xff\xff"),
        "symbols-beyond": _with_wild_symbols(whole),
        "header-only": whole[:ELF64_HEADER],
        "half-header": whole[: ELF64_HEADER // 2],
        "half": whole[: len(whole) // 2],
        "not-elf": b"\x7fELF" + b"A" * 8192,
    }
    source = random.Random(1)
    for index in range(fuzzed):
        images[f"fuzzed-{index}"] = _fuzzed(whole, source)
    return [_write(folder / name / library.name, image) for name, image in images.items()]


def _write(path: Path, image: bytes) -> Path:
    path.parent.mkdir(parents=True)
    path.write_bytes(image)
    return path


def _patched(image: bytes, offset: int, value: bytes) -> bytes:
    return image[:offset] + value + image[offset + len(value) :]


def _with_wild_symbols(image: bytes) -> bytes:
    """All dynamic symbols keep their names, and point far beyond the file."""
    changed = bytearray(image)
    (offset,) = struct.unpack_from("<Q", image, SECTION_HEADERS_OFFSET)
    (count,) = struct.unpack_from("<H", image, SECTION_HEADER_COUNT)
    for index in range(count):
        header = SECTION_HEADER.unpack_from(image, offset + index * SECTION_HEADER.size)
        kind, start, size = header[1], header[4], header[5]
        if kind != SECTION_DYNSYM:
            continue
        for at in range(start, start + size, SYMBOL.size):
            name, info, other, section, _value, _size = SYMBOL.unpack_from(image, at)
            SYMBOL.pack_into(changed, at, name, info, other, section, 2**64 - 8, 2**63)
    return bytes(changed)


def _fuzzed(image: bytes, source: random.Random) -> bytes:
    """Random bytes in the headers and tables, where a parser looks."""
    changed = bytearray(image)
    (sections,) = struct.unpack_from("<Q", image, SECTION_HEADERS_OFFSET)
    for _ in range(200):
        region = source.choice([(16, 1024), (1024, 65536), (sections, len(image))])
        changed[source.randrange(*region)] = source.randrange(256)
    return bytes(changed)
