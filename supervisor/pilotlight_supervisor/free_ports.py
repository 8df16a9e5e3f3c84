"""Free ports, each for one platform: a port is chosen seconds before its server listens, and two may start at once."""

from __future__ import annotations

import os
import random
import socket

HOST = "127.0.0.1"
QUIET_PORTS = range(20_000, 32_000)
"""Below the ports of outgoing connections: Linux from 32,768, others from 49,152."""
PORTS_TRIED = 64
_claims: dict[tuple[str, int], int] = {}
"""Addresses that this process has claimed, each with an open socket, whose name no other process can take meanwhile."""


def free_port(host: str = HOST) -> int:
    """An unused port of `host`, outside the range of outgoing connections if possible.

    It is claimed until this process ends.

    Raises:
        OSError: none was found.
    """
    for quiet in random.sample(QUIET_PORTS, PORTS_TRIED):
        if claim_port(host, quiet):
            return quiet
    for _ in range(PORTS_TRIED):
        with socket.socket() as probe:
            probe.bind((host, 0))
            port = int(probe.getsockname()[1])
        if claim_port(host, port):
            return port
    raise OSError(f"{host} has no free port")


def claim_port(host: str, port: int) -> bool:
    """Whether `port` of `host` is free and claimed by nobody.

    Then it is claimed until it is released, or this process ends.
    """
    if (host, port) in _claims or not can_listen(host, port):
        return False
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0pilotlight-port-{host}-{port}")  # an abstract name: it ends with the process, and leaves no file
    except OSError:
        claim.close()
        return False
    _claims[host, port] = claim.detach()
    return True


def release_port(host: str, port: int) -> None:
    """Give up this process's claim on a port of `host`, if it has one."""
    if (claim := _claims.pop((host, port), None)) is not None:
        os.close(claim)


def can_listen(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
