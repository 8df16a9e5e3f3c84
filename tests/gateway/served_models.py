"""A world that listens for HTTP and gRPC, as a gateway does, and the stock clients of the Open Inference Protocol.

The clients are imported late: processes that pytest forks must not have grpc's threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar

from pilotlight_core.host.certificates.server_context import TlsFiles
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_gateway.front_wiring import GrpcAddress, GrpcFront
from pilotlight_gateway.http.listening_socket import listen
from pilotlight_gateway.http.server import make_server
from pilotlight_gateway.http_wiring import wire_http, wire_models
from pilotlight_gateway.limits.connections import ConnectionBook, ConnectionBounds
from tests.builders.specs import method
from tests.gateway.world import World, function
from tests.waiting import until

T = TypeVar("T")
ARRAY = {"type": ["array", "number", "boolean"], "x-pilotlight": "ndarray"}
FLOATS = ARRAY | {"x-pilotlight-dtype": "float32"}


class ServedModels(NamedTuple):
    """Where a world listens."""

    world: World
    http: str
    grpc: str
    front: GrpcFront

    async def ask_http(self, ask: Callable[[Any], T], **options: Any) -> T:
        """What `ask` does with the stock HTTP client, in a thread of its own."""

        def work() -> T:
            import tritonclient.http

            client = tritonclient.http.InferenceServerClient(self.http, **options)
            client.register_plugin(_key_plugin(self.world))
            try:
                return ask(client)
            finally:
                client.close()

        return await asyncio.to_thread(work)

    async def ask_grpc(self, ask: Callable[[Any], T], *, with_key: bool = True, **options: Any) -> T:
        """What `ask` does with the stock gRPC client, in a thread of its own."""

        def work() -> T:
            import tritonclient.grpc

            client = tritonclient.grpc.InferenceServerClient(self.grpc, **options)
            if with_key:
                client.register_plugin(_key_plugin(self.world))
            try:
                return ask(client)
            finally:
                client.close()

        return await asyncio.to_thread(work)


def _key_plugin(world: World) -> Any:
    """Adds the key to each request, as the client's documentation says."""
    from tritonclient._plugin import InferenceServerClientPlugin

    class KeyPlugin(InferenceServerClientPlugin):  # type: ignore[misc] # it has no types
        def __call__(self, request: Any) -> None:
            request.headers["authorization"] = f"Bearer {world.key}"

    return KeyPlugin()


def model(name: str = "double", *, output: dict[str, Any] | None = None, **parameters: Any) -> FunctionSpec:
    """A function of these parameters, all of which are needed; by default one array `x`."""
    return function(name, model_method(output=output, **parameters))


def model_method(*, output: dict[str, Any] | None = None, **parameters: Any) -> MethodSpec:
    """The method of `model`."""
    properties = parameters or {"x": ARRAY}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return method(attribute="double", input_schema=schema, output_schema=output or {})


@asynccontextmanager
async def served_models(world: World, tls: TlsFiles | None = None) -> AsyncIterator[ServedModels]:
    """A world that listens until the block ends."""
    parts = world.services.parts()
    listening, reserved = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    port = reserved.getsockname()[1]
    reserved.close()
    server = make_server(wire_http(parts), book=ConnectionBook(ConnectionBounds()), graceful_seconds=1)
    front = GrpcFront(parts, wire_models(parts), GrpcAddress("127.0.0.1", port, tls))
    async with world.services.workers.running(), front.running(), asyncio.TaskGroup() as group:
        group.create_task(server.serve(sockets=[listening]))
        await until(lambda: server.started)
        yield ServedModels(world, f"127.0.0.1:{listening.getsockname()[1]}", f"127.0.0.1:{front.port}", front)
        server.stop()
