"""The filter, interpreted by a small machine of the test's own: what the kernel would answer to each call."""

from __future__ import annotations

import errno
import struct

import pytest

from pilotlight_runtime.sandbox.sandbox_errors import SandboxUnavailable
from pilotlight_runtime.sandbox.seccomp import ARCHITECTURES, CLONE3, DENIED, program

ALLOW, KILL = 0x7FFF0000, 0x80000000
MACHINES = sorted(ARCHITECTURES)


def answer(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the program on one system call."""
    arch = ARCHITECTURES[machine].audit if audit is None else audit
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    code = list(struct.iter_unpack("=HBBI", program(machine)))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown operation {operation:#x}")


def refused(error: int) -> int:
    return 0x00050000 | error


@pytest.mark.parametrize("machine", MACHINES)
def test_what_is_denied_is_answered_with_eperm(machine: str) -> None:
    """By the call's number on each machine."""
    column = ARCHITECTURES[machine].column
    numbers = [entry[column] for entry in DENIED.values() if entry[column] is not None]

    assert len(numbers) == len(set(numbers)) > 45
    assert {answer(machine, number) for number in numbers if number is not None} == {refused(errno.EPERM)}


@pytest.mark.parametrize("machine", MACHINES)
def test_nothing_else_is(machine: str) -> None:
    """Of all numbers there are, with arguments of 0, only the denied ones, clone3, and the socket family 0 fail."""
    arch = ARCHITECTURES[machine]
    failing = {number for number in range(600) if answer(machine, number) != ALLOW}
    denied = {entry[arch.column] for entry in DENIED.values()} - {None}

    assert failing == denied | {CLONE3, arch.socket}
    assert answer(machine, CLONE3) == refused(errno.ENOSYS)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("flag", [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000])
def test_clone_may_make_threads_but_no_namespace(machine: str, flag: int) -> None:
    """Every flag of a namespace is refused by itself."""
    clone = ARCHITECTURES[machine].clone

    assert answer(machine, clone, flag | 17) == refused(errno.EPERM)
    assert answer(machine, clone, 0x3D0F00) == ALLOW  # what pthread_create passes
    assert answer(machine, clone, 0x80 | 17) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_only_families_that_a_network_namespace_contains(machine: str) -> None:
    """A socket of another family would reach the hypervisor."""
    socket = ARCHITECTURES[machine].socket
    allowed = [family for family in range(64) if answer(machine, socket, family) == ALLOW]

    assert allowed == [1, 2, 10, 16]
    assert answer(machine, socket, 40) == refused(errno.EAFNOSUPPORT)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_terminal_cannot_be_typed_into(machine: str) -> None:
    """The kernel reads 32 bits of the request, and so does the filter, whatever the upper half holds."""
    ioctl = ARCHITECTURES[machine].ioctl

    assert answer(machine, ioctl, 0, 0x5412) == refused(errno.EPERM)
    assert answer(machine, ioctl, 0, 0xFFFF_FFFF_0000_5412) == refused(errno.EPERM)
    assert answer(machine, ioctl, 0, 0x541C) == refused(errno.EPERM)
    assert answer(machine, ioctl, 0, 0x5413) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_no_socket_lingers(machine: str) -> None:
    """By the level and the option, of which the kernel reads 32 bits; other options of either are as they were."""
    setsockopt, high = ARCHITECTURES[machine].setsockopt, 0xFFFF_FFFF_0000_0000

    assert answer(machine, setsockopt, 3, 1, 13) == refused(errno.EPERM)
    assert answer(machine, setsockopt, 3, high | 1, high | 13) == refused(errno.EPERM)
    assert {answer(machine, setsockopt, 3, 1, option) for option in range(100) if option != 13} == {ALLOW}
    assert {answer(machine, setsockopt, 3, level, 13) for level in (0, 6, 17, 41, 13)} == {ALLOW}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_foreign_architecture_is_death(machine: str) -> None:
    """Its numbers mean other calls."""
    assert answer(machine, 1, audit=0x40000003) == KILL  # i386


def test_x32_is_death_where_it_exists() -> None:
    """On x86_64 alone."""
    assert answer("x86_64", 0x40000000 + 1) == KILL


def test_an_unknown_machine_is_refused() -> None:
    """Rather than run without a filter."""
    with pytest.raises(SandboxUnavailable, match="no system call filter for riscv64"):
        program("riscv64")
