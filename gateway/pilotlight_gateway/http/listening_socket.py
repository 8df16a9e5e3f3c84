"""The sockets that servers listen on."""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

SO_ATTACH_FILTER = 26
"""Linux's; Python has no name for it."""
NO_SYN = ((0x30, 0, 0, 13), (0x45, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFF_FFFF))
"""A classic BPF program: load the flags of the TCP header; if SYN is set, drop the packet; else take all of it."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 lets the system choose.

    Raises:
        OSError: if the address is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
        listening.settimeout(0.0)
    except OSError:
        listening.close()
        raise
    return listening


def end_handshakes(listening: socket.socket) -> None:
    """Let no connection begin any more; those that wait to be accepted still can be.

    A listener that closes resets what waits in its backlog: its client has connected, and perhaps sent a request, and
    cannot know whether that ran. One whose first packet is dropped sends it again a second later, and is refused then.
    Where the system has no such filters nothing happens.
    """
    code = b"".join(struct.pack("HBBI", *step) for step in NO_SYN)
    held = ctypes.create_string_buffer(code, len(code))  # the kernel copies it
    with contextlib.suppress(OSError):
        listening.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HL", len(NO_SYN), ctypes.addressof(held))
        )


def url_of(listening: socket.socket) -> str:
    """The URL of a listening socket for clients on this machine."""
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - only recognised here
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
