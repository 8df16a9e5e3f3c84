"""Connections without a key keep nobody out who has one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

pytestmark = pytest.mark.system
PLACES = 64
OF_ADDRESS = 16
ATTACKERS = 300


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with few places, where the addresses of this machine are as any others."""
    env = {
        "PILOTLIGHT_CONNECTIONS": str(PLACES),
        "PILOTLIGHT_UNKNOWN_CONNECTIONS_PER_ADDRESS": str(OF_ADDRESS),
        "PILOTLIGHT_UNKNOWN_CONNECTION_SECONDS": "20",
        "PILOTLIGHT_TRUSTED_PROXIES": "127.0.0.1",
    }
    with run_platform(tmp_path_factory.mktemp("idle"), "--cpu-slots", "1", "--blanks", "0", env=env) as running:
        yield running


def connect(platform: Platform, source: str) -> socket.socket:
    """A connection from an address of this machine."""
    at = urlsplit(platform.url)
    return socket.create_connection((at.hostname or "", at.port or 0), timeout=30.0, source_address=(source, 0))


def is_open(connection: socket.socket) -> bool:
    """Whether the gateway has neither refused nor closed it."""
    connection.settimeout(0.0)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return False


def asked(platform: Platform, source: str) -> int:
    """The status that a caller with a key gets, over a connection of its own."""
    transport = httpx.HTTPTransport(local_address=source)
    headers = {"Authorization": f"Bearer {platform.key}"}
    with httpx.Client(base_url=platform.url, transport=transport, headers=headers, timeout=30.0) as client:
        return client.get("/v1/apps").status_code


def test_one_address_holds_few_connections_without_a_key(platform: Platform) -> None:
    """It hears why, others do not notice, and what it holds ends soon."""
    with ExitStack() as stack:
        held = [stack.enter_context(closing(connect(platform, "127.0.0.3"))) for _ in range(ATTACKERS)]
        refused = stack.enter_context(closing(connect(platform, "127.0.0.3")))
        answer = refused.recv(4_096)

        assert answer.startswith(b"HTTP/1.1 429")
        assert b"127.0.0.3 has 16 connections to this gateway, over which no request with a valid key" in answer
        assert asked(platform, "127.0.0.2") == 200
        assert sum(is_open(one) for one in held) <= OF_ADDRESS
        wait_until(lambda: not any(is_open(one) for one in held), "what has no key is closed")
    assert 'pilotlight_connections_refused_total{limit="unknown_connections_per_address"}' in platform.metrics()[0]


@pytest.mark.parametrize("sources", [["127.0.0.1"], [f"127.0.1.{number}" for number in range(1, 31)]])
def test_many_connections_without_a_key_give_way(platform: Platform, sources: list[str]) -> None:
    """Through a proxy, or of many addresses, more than there are places: who has a key is let in all the same."""
    with ExitStack() as stack:
        held = [
            stack.enter_context(closing(connect(platform, sources[number % len(sources)])))
            for number in range(ATTACKERS)
        ]

        assert [asked(platform, "127.0.0.2") for _ in range(20)] == [200] * 20
        assert sum(is_open(one) for one in held) <= PLACES
