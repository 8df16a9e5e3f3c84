"""The descriptors of a sandbox's start: which end is open when."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable

import pytest

from pilotlight_runtime.sandbox.descriptors import SO_PASSRIGHTS, descriptors, memory_file, refuse_descriptors
from pilotlight_runtime.sandbox.sandbox_spec import FILES, Inherited


def open_among(fds: Iterable[int]) -> list[int]:
    """Those of `fds` that are open."""
    found = []
    for fd in fds:
        with contextlib.suppress(OSError):
            os.fstat(fd)
            found.append(fd)
    return found


def theirs_of(inherited: Inherited) -> tuple[int, ...]:
    return (inherited.socket, inherited.status, inherited.seccomp, *inherited.files)


def test_a_start_that_fails_leaves_none_open() -> None:
    """Neither end of anything."""
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are wanted

    with pytest.raises(OSError, match="no bubblewrap"), descriptors(b"filter"):
        raise OSError("no bubblewrap")

    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - names are wanted


def test_after_a_start_only_our_ends_are_open() -> None:
    """Else the guest would never see that we are gone, nor we that it is."""
    with descriptors(b"filter") as (ours, inherited):
        theirs = theirs_of(inherited)
        assert open_among(theirs) == list(theirs)
        assert not os.get_blocking(ours.status_fd)
    try:
        assert open_among(theirs) == []
        assert open_among((ours.socket.fileno(), ours.status_fd)) == [ours.socket.fileno(), ours.status_fd]
        assert ours.socket.recv(1) == b""
        assert os.read(ours.status_fd, 1) == b""
    finally:
        ours.socket.close()
        os.close(ours.status_fd)


def test_what_is_sent_at_one_end_is_read_at_the_other() -> None:
    """The socket, and what bubblewrap reports."""
    with descriptors(b"filter") as (ours, inherited):
        os.write(inherited.socket, b"guest")
        os.write(inherited.status, b"report")

        assert ours.socket.recv(10) == b"guest"
        assert os.read(ours.status_fd, 10) == b"report"
        assert os.read(inherited.seccomp, 10) == b"filter"
        assert [os.read(fd, 1_000).decode() for fd in inherited.files] == [text for _, text in FILES]
    ours.socket.close()
    os.close(ours.status_fd)


def test_a_memory_file_is_read_from_its_beginning_and_closed() -> None:
    """Its content is there once."""
    with memory_file(b"content") as fd:
        assert (os.read(fd, 100), os.read(fd, 100)) == (b"content", b"")

    assert open_among((fd,)) == []


def test_a_guest_passes_no_descriptors() -> None:
    """Where the kernel can refuse them; the agent's own may still go to the other side."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        refuse_descriptors(ours)
        try:
            assert ours.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS) == 0
        except OSError:
            pytest.skip("this kernel passes them to everybody (before 6.16)")
        with pytest.raises(PermissionError):
            socket.send_fds(theirs, [b"x"], [theirs.fileno()])
        socket.send_fds(ours, [b"x"], [ours.fileno()])
    with descriptors(b"filter") as (held, _), held.socket:
        assert held.socket.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS) == 0
        os.close(held.status_fd)
