"""What a gateway listens on: for clients, and for agents, each with a certificate of its own or without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from socket import socket

import structlog
from starlette.types import ASGIApp

from pilotlight_core.host.certificates.server_context import ServerContext, TlsFiles
from pilotlight_core.host.open_files import allow_open_files
from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.front_wiring import GrpcAddress
from pilotlight_gateway.http.link_upgrades import Door, LinkingProtocol
from pilotlight_gateway.http.listening_socket import listen, url_of
from pilotlight_gateway.http.quiet_server import QuietServer
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.http.tls_listener import HandshakeBounds, TlsListener
from pilotlight_gateway.limits.connections import ConnectionBook, ConnectionBounds
from pilotlight_gateway.settings import ServeSettings

BODY_CONNECTIONS = ConnectionBounds(of_all=4096, of_address=512, exempt=read_networks("127.0.0.0/8, ::1"))
"""To the listener for large bodies: an agent has 8."""
BODY_HANDSHAKES = HandshakeBounds(exempt=BODY_CONNECTIONS.exempt)
FILES_BESIDE_CONNECTIONS = 512
"""What a gateway has open besides its clients' connections, with room: files, the bus, the ledger, workers."""

log = structlog.get_logger()


@dataclass(frozen=True, kw_only=True)
class Listener:
    """A socket that listens, and what it speaks TLS with; None: it does not."""

    socket: socket
    tls: ServerContext | None

    def accepting(self, bounds: HandshakeBounds) -> TlsListener | None:
        """What accepts here; None: there is no TLS."""
        return TlsListener(self.tls, bounds.within(allow_open_files())) if self.tls is not None else None

    @property
    def url(self) -> str:
        """For clients on this machine."""
        url = url_of(self.socket)
        return url if self.tls is None else url.replace("http://", "https://", 1)


@contextmanager
def open_listeners(settings: ServeSettings) -> Iterator[tuple[Listener, Listener]]:
    """The listener of the API, and that of large bodies.

    Raises:
        BadInput: a certificate cannot be used. OSError: an address is in use.
    """
    public_tls = _context("--tls", settings.tls_cert, settings.tls_key, settings.tls_client_ca)
    internal_tls = _context("--internal-tls", settings.internal_tls_cert, settings.internal_tls_key)
    with (
        listen(settings.host, settings.port) as public,
        listen(settings.internal_host, settings.internal_port) as internal,
    ):
        yield Listener(socket=public, tls=public_tls), Listener(socket=internal, tls=internal_tls)


def _context(setting: str, certificate: str, key: str, client_authority: str = "") -> ServerContext | None:
    files = _files(setting, certificate, key, client_authority)
    return None if files is None else ServerContext(files, datetime.now(UTC))


def _files(setting: str, certificate: str, key: str, client_authority: str = "") -> TlsFiles | None:
    if not certificate:
        return None
    return TlsFiles(
        certificate=Path(certificate).expanduser(),
        key=Path(key).expanduser(),
        client_authority=Path(client_authority).expanduser() if client_authority else None,
        setting=setting,
    )


def grpc_address(settings: ServeSettings) -> GrpcAddress:
    """Where gRPC is served, with the certificate of the API. It asks no client for one: grpc's optional ones go
    unverified, so a key is what counts there."""
    tls = _files("--tls", settings.tls_cert, settings.tls_key)
    return GrpcAddress(settings.grpc_host, settings.grpc_port, tls)


def client_connections(settings: ServeSettings) -> ConnectionBook:
    """Of clients: no more than the host lets the process have."""
    bounds, files = settings.connection_bounds, allow_open_files()
    handshakes = _handshakes(settings).within(files).of_all if settings.tls_cert else 0
    room = max(8, files - FILES_BESIDE_CONNECTIONS - handshakes)
    if room < bounds.of_all:
        log.warning("the host allows fewer open files than there may be connections", connections=room)
    return ConnectionBook(replace(bounds, of_all=min(bounds.of_all, room)))


def client_server(
    app: ASGIApp, connections: ConnectionBook, listener: Listener, settings: ServeSettings
) -> QuietServer:
    """Serves clients, whose connections are counted."""
    return make_server(app, book=connections, tls=listener.accepting(_handshakes(settings)))


def body_server(bodies: LargeBodies, listener: Listener, door: Door) -> QuietServer:
    """Serves agents with large bodies, and takes the links that were offered."""
    tls, protocol = listener.accepting(BODY_HANDSHAKES), partial(LinkingProtocol, door)
    return make_server(bodies, book=ConnectionBook(BODY_CONNECTIONS), protocol=protocol, tls=tls)


def _handshakes(settings: ServeSettings) -> HandshakeBounds:
    return HandshakeBounds(exempt=settings.connection_bounds.exempt)
