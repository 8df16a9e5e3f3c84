"""The gRPC server: it listens from its start to its end, and serves TLS with the certificate of the HTTP API.

grpc's own threads poll sockets; all handlers run on the event loop that started it, which must be the process's only
one. It takes no new requests from its stop on, so what drains calls goes before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import structlog

from pilotlight_core.host.certificates.server_context import TlsFiles, read_context
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.grpc_front.inference_service import InferenceService
from pilotlight_gateway.grpc_front.model_answers import GrpcServices
from pilotlight_gateway.http.calls.call_limits import CALL_BODY

REQUESTS = 1_024
"""Requests and streams at a time; what is more is refused as RESOURCE_EXHAUSTED."""
LAST_S = 1.0
"""For answers that are on their way when the server stops."""
STOP_S = 5.0
"""After which its stop is waited for no more."""
OPTIONS = (
    ("grpc.so_reuseport", 0),  # or a second process would listen beside it, unnoticed
    ("grpc.max_receive_message_length", CALL_BODY.size),
    ("grpc.max_send_message_length", 64 * 2**20),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 128),
    ("grpc.http2.bdp_probe", 0),  # a stream that nobody reads holds its 64 KiB, and no window that has grown
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 300_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)

log = structlog.get_logger(__name__)


class CertificateSource:
    """The certificate of new connections: the files as they are, if they can be used. Called in grpc's threads."""

    def __init__(self, files: TlsFiles) -> None:
        self._files = files
        self._stamp = files.stamp()
        self._failed: object = None

    def read(self) -> Any:
        """The present configuration. Raises BadInput: it cannot be used."""
        read_context(self._files, datetime.now(UTC))
        pair = self._files.key.read_bytes(), self._files.certificate.read_bytes()
        return grpc.ssl_server_certificate_configuration([pair])

    def changed(self) -> Any:
        """Another configuration than before; None: there is none that can be used."""
        stamp = self._files.stamp()
        if stamp in (self._stamp, self._failed):
            return None
        try:
            found = self.read()
        except Exception as error:  # noqa: BLE001 - whatever it is, the listener has one that it can serve with
            self._failed = stamp
            log.error("the new certificate cannot be used for gRPC", error=str(error))
            return None
        self._stamp = stamp
        return found

    def credentials(self) -> Any:
        """What a server listens with. Raises as `read`."""
        return grpc.dynamic_ssl_server_credentials(self.read(), self.changed)


class GrpcListener:
    """A server that listens."""

    def __init__(self, server: Any, port: int) -> None:
        self._server = server
        self.port = port

    async def stop(self) -> None:
        """Take no more requests, give those that are answered a moment, and end. Ends in any case."""
        try:
            async with asyncio.timeout(STOP_S):
                await self._server.stop(LAST_S)
        except TimeoutError:
            log.warning("the gRPC server did not stop in time", seconds=STOP_S)


@asynccontextmanager
async def grpc_listener(
    services: GrpcServices, host: str, port: int, tls: TlsFiles | None
) -> AsyncIterator[GrpcListener]:
    """Listens at `host` and `port` (0: any) until the block ends.

    Raises:
        BadInput: the address is in use, or the certificate cannot be used.
    """
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=REQUESTS)
    server.add_generic_rpc_handlers((InferenceService(services).handler(),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if tls is None:
            bound = server.add_insecure_port(address)
        else:
            bound = server.add_secure_port(address, CertificateSource(tls).credentials())
    except RuntimeError as error:
        raise BadInput(f"--grpc-port: {address} cannot be listened at: {error}.", field="grpc_port") from None
    listener = GrpcListener(server, bound)
    await server.start()
    log.info("gRPC serves", host=host, port=bound, tls=tls is not None)
    try:
        yield listener
    finally:
        await listener.stop()
