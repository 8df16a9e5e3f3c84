"""The descriptors between the agent and bubblewrap; the agent closes bubblewrap's ends once it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from pilotlight_runtime.sandbox.sandbox_spec import FILES, Inherited

SO_PASSRIGHTS = 83
"""Of Linux 6.16 and later."""


@dataclass(frozen=True, kw_only=True)
class ParentDescriptors:
    socket: socket.socket
    status_fd: int
    """bwrap's reports, as JSON lines; non-blocking."""


@contextmanager
def descriptors(seccomp: bytes) -> Iterator[tuple[ParentDescriptors, Inherited]]:
    """Both ends of everything; theirs are closed on leaving, ours only if the body raises."""
    with ExitStack() as ours, ExitStack() as theirs:
        socket_ours, socket_theirs = socket.socketpair()
        ours.callback(socket_ours.close)
        theirs.callback(socket_theirs.close)
        refuse_descriptors(socket_ours)
        status_ours, status_theirs = os.pipe()
        ours.callback(os.close, status_ours)
        theirs.callback(os.close, status_theirs)
        os.set_blocking(status_ours, False)
        yield (
            ParentDescriptors(socket=socket_ours, status_fd=status_ours),
            Inherited(
                socket=socket_theirs.fileno(),
                status=status_theirs,
                seccomp=theirs.enter_context(memory_file(seccomp)),
                files=tuple(theirs.enter_context(memory_file(text.encode())) for _, text in FILES),
            ),
        )
        ours.pop_all()


@contextmanager
def memory_file(content: bytes) -> Iterator[int]:
    """A descriptor from which `content` can be read once."""
    fd = os.memfd_create("pilotlight")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


def refuse_descriptors(sock: socket.socket) -> None:
    """Take no descriptors from the other side, nor on connections to it: to drop one may take long.

    Older kernels cannot refuse them; there the filter of system calls alone keeps closing them short.
    """
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
