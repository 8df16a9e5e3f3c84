"""Sockets to listen on."""

from __future__ import annotations

import pytest

from pilotlight_gateway.http.listening_socket import listen, url_of


async def test_a_taken_address_is_refused() -> None:
    """By the operating system's own error."""
    with listen("127.0.0.1", 0) as first, pytest.raises(OSError):
        listen("127.0.0.1", first.getsockname()[1])


def test_a_url_is_one_that_clients_here_can_use() -> None:
    """A socket on all addresses is reached on loopback."""
    with listen("0.0.0.0", 0) as everywhere:  # noqa: S104
        assert url_of(everywhere) == f"http://127.0.0.1:{everywhere.getsockname()[1]}"
