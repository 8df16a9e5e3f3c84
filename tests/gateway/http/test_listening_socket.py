"""Sockets to listen on."""

from __future__ import annotations

import errno
import socket

import pytest

from pilotlight_gateway.http.listening_socket import end_handshakes, listen, url_of

SYN_SENT = 2
"""The state of a connection whose first packet was not answered."""


async def test_a_taken_address_is_refused() -> None:
    """By the operating system's own error."""
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError):
        listen("127.0.0.1", first.getsockname()[1])


def test_a_url_is_one_that_clients_here_can_use() -> None:
    """A socket on all addresses is reached on loopback."""
    with listen("0.0.0.0", 0) as everywhere:  # noqa: S104
        assert url_of(everywhere) == f"http://127.0.0.1:{everywhere.getsockname()[1]}"


def test_a_connection_that_waits_is_accepted_and_no_other_one_begins() -> None:
    """Who comes later has not connected, so it is refused once the listener is closed, and not reset."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()) as early:
        end_handshakes(listening)
        with socket.socket() as late:
            late.settimeout(0.0)
            assert late.connect_ex(listening.getsockname()) == errno.EINPROGRESS
            assert late.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == SYN_SENT

            accepted, peer = listening.accept()
            with accepted:
                assert peer == early.getsockname()
                early.sendall(b"asked")
                assert accepted.recv(16) == b"asked"
            with pytest.raises(BlockingIOError):
                listening.accept()
