"""Ports that nobody else is given between being chosen and being listened at."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from pilotlight_supervisor.free_ports import HOST, QUIET_PORTS, can_listen, claim_port, free_port, release_port

OTHER_HOST = "127.0.0.2"
CLAIM = "import sys; from pilotlight_supervisor import free_ports as f; print(f.claim_port(f.HOST, int(sys.argv[1])))"


def claimed_elsewhere(port: int) -> bool:
    """Whether another process can have the port."""
    done = subprocess.run([sys.executable, "-c", CLAIM, str(port)], check=True, capture_output=True, text=True)
    return done.stdout.strip() == "True"


def test_a_free_port_is_given_to_no_connection() -> None:
    """It is free, and below those that outgoing connections get, which might have it before a server does."""
    ports = [free_port() for _ in range(20)]
    try:
        assert set(ports) < set(QUIET_PORTS)
        assert all(can_listen(HOST, port) for port in ports)
    finally:
        for port in ports:
            release_port(HOST, port)


def test_a_port_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few are tried, in the range and beyond it."""
    monkeypatch.setattr("pilotlight_supervisor.free_ports.QUIET_PORTS", range(port := free_port(), port + 1))
    monkeypatch.setattr("pilotlight_supervisor.free_ports.PORTS_TRIED", 1)

    beyond = free_port()
    assert beyond != port
    assert not claimed_elsewhere(beyond)
    release_port(HOST, port)
    assert free_port() == port


def test_a_port_that_is_chosen_is_no_other_platforms() -> None:
    """Though nobody listens there yet; nor for another use of this one."""
    port = free_port()

    assert not claim_port(HOST, port)
    assert not claimed_elsewhere(port)
    release_port(HOST, port)
    assert claimed_elsewhere(port)


def test_a_port_is_claimed_at_one_address() -> None:
    """Two platforms of one machine may have the same port at addresses of their own."""
    port = free_port()
    try:
        assert claim_port(OTHER_HOST, port)
    finally:
        release_port(HOST, port)
        release_port(OTHER_HOST, port)


def test_a_claim_ends_with_its_process() -> None:
    """Also where that was killed: nothing is left behind."""
    code = "from pilotlight_supervisor import free_ports as f; print(f.free_port(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert not claim_port(HOST, port)
        process.kill()

    assert claim_port(HOST, port)
    release_port(HOST, port)


def test_a_port_that_is_in_use_cannot_be_had() -> None:
    """Claimed or not."""
    with socket.create_server((HOST, 0)) as server:
        assert not claim_port(HOST, server.getsockname()[1])
