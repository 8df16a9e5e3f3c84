"""Composes the fronts for clients of other platforms, over HTTP and over gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pilotlight_core.host.certificates.server_context import TlsFiles
from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.calls.call_port import CallPort
from pilotlight_gateway.deploys.served_models import ServedModels
from pilotlight_gateway.http.calls.call_endpoint import CallEntry
from pilotlight_gateway.http.inference.inference_counts import InferenceCounts
from pilotlight_gateway.http.inference.model_calls import ModelCalls
from pilotlight_gateway.http.inference.model_endpoints import TensorModelServices
from pilotlight_gateway.http.inference.model_lookup import ModelLookup
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http.protocol.readiness import Readiness
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.registry_port import RegistryPort

if TYPE_CHECKING:
    from pilotlight_gateway.grpc_front.grpc_listener import GrpcListener


class FrontParts(Protocol):
    """What the fronts stand on, of all that the HTTP side does."""

    @property
    def split_calls(self) -> CallPort: ...
    @property
    def codec(self) -> BodyCodec: ...
    @property
    def counts(self) -> InferenceCounts: ...
    @property
    def rates(self) -> ApiRates: ...
    @property
    def readiness(self) -> Readiness: ...
    @property
    def registry(self) -> RegistryPort: ...
    @property
    def requests(self) -> OpenRequests: ...
    @property
    def schemas(self) -> VersionSchemas: ...


class GrpcAddress(NamedTuple):
    """Where to listen; port 0: nowhere."""

    host: str
    port: int
    tls: TlsFiles | None = None


def stream_slots() -> TenantSlots:
    """Streams over gRPC at a time.

    On each a message may be arriving, whose memory (10 MB at most) is counted only once all of it is there, and a
    stream that waits for its client cannot be told from one that is in the middle of one: so a tenant has few.
    """
    return TenantSlots(512, "streams over gRPC are open", of_tenant=32, retry_after=5.0)


def model_services(parts: FrontParts, entry: CallEntry, clock: Callable[[], float]) -> TensorModelServices:
    """Calls of models, and what is shown of them."""
    lookup = ModelLookup(entry.resolver, parts.schemas, ServedModels(parts.registry), parts.rates)
    calls = ModelCalls(entry, parts.split_calls, parts.codec, lookup, parts.counts, clock)
    return TensorModelServices(calls=calls, registry=parts.registry, readiness=parts.readiness, release=_release())


class GrpcFront:
    """The fronts over gRPC, if a port is given for them."""

    def __init__(self, parts: FrontParts, models: TensorModelServices, address: GrpcAddress) -> None:
        self._parts = parts
        self._models = models
        self._address = address
        self._listener: GrpcListener | None = None

    @property
    def port(self) -> int:
        """Where it listens; 0: nowhere."""
        return self._listener.port if self._listener is not None else 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Listen until the block ends.

        Raises:
            BadInput: the extra is not installed, the address is in use, or the certificate cannot be used.
        """
        if not self._address.port:
            yield
            return
        try:
            from pilotlight_gateway.grpc_front.grpc_listener import grpc_listener  # here: most gateways do without
            from pilotlight_gateway.grpc_front.model_answers import GrpcServices
        except ModuleNotFoundError as error:
            raise BadInput(
                f"--grpc-port: {error.name} is not installed: pip install 'pilotlight[grpc]'.", field="grpc_port"
            ) from None
        parts, clock = self._parts, self._models.calls.clock
        services = GrpcServices(
            models=self._models, rates=parts.rates, requests=parts.requests, streams=stream_slots(), clock=clock
        )
        async with grpc_listener(services, self._address.host, self._address.port, self._address.tls) as listener:
            self._listener = listener
            yield

    async def stop(self) -> None:
        """Take no more requests, and end; within a few seconds."""
        if self._listener is not None:
            await self._listener.stop()


def _release() -> str:
    try:
        return version("pilotlight")
    except PackageNotFoundError:  # run from a tree that is not installed
        return ""
