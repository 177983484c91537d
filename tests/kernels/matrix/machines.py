"""Kinds of machine that guests are, each as QEMU emulates it."""

from dataclasses import dataclass
from pathlib import Path

from harness.paths import TLSPROF


@dataclass(frozen=True)
class Machine:
    """A kind of machine."""

    name: str
    """As the kernel and Rust call it."""

    debian: str
    """As Debian does."""

    emulator: tuple[str, ...]
    """QEMU and what is special of this machine."""

    console: str
    """The device for what the kernel prints."""

    results: str
    """The device for results."""

    ports: tuple[str, ...]
    """What makes these devices of the character devices `console` and `results`."""


X86_64 = Machine(
    "x86_64",
    "amd64",
    # Without la57 an emulated CPU does with four levels of page tables.
    ("qemu-system-x86_64", "-machine", "q35", "-cpu", "max,la57=off"),
    console="ttyS0",
    results="ttyS1",
    ports=("-serial", "chardev:console", "-serial", "chardev:results"),
)

AARCH64 = Machine(
    "aarch64",
    "arm64",
    # Signing of pointers by QEMU's own function, which costs less than the architecture's (QEMU's
    # manual, "Arm CPU Features").
    ("qemu-system-aarch64", "-machine", "virt", "-cpu", "max,pauth-impdef=on"),
    console="ttyAMA0",
    # The board has one serial port.
    results="hvc0",
    ports=(
        *("-serial", "chardev:console"),
        *("-device", "virtio-serial-pci", "-device", "virtconsole,chardev=results"),
    ),
)

ELF_MACHINES = {62: X86_64, 183: AARCH64}
"""By `e_machine` (elf.h: EM_X86_64, EM_AARCH64)."""


def _of(program: Path) -> Machine:
    """What a program is for; this host's kind if there is none, which is said where it is needed."""
    if not program.is_file():
        return X86_64
    with open(program, "rb") as file:
        header = file.read(20)
    return ELF_MACHINES[int.from_bytes(header[18:20], "little")]


MACHINE = _of(TLSPROF)
"""What the program under test is for."""
