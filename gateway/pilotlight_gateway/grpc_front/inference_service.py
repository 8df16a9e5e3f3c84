"""The methods of `inference.GRPCInferenceService`.

Each is registered as a stream, those of one request too: on the wire there is no difference, and a message is read only
once its sender is known. Of methods that need no key none is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from weakref import WeakValueDictionary

import grpc
from google.protobuf.message import DecodeError

from pilotlight_core.model.errors import BadInput, DeadlineExceeded
from pilotlight_gateway.grpc_front.grpc_requests import Context, headers_of, principal_of, report_errors, seconds_left
from pilotlight_gateway.grpc_front.infer_messages import (
    CONFIG_TYPES,
    SERVICE,
    InferMessage,
    message_class,
    message_of,
)
from pilotlight_gateway.grpc_front.infer_stream import InferStream
from pilotlight_gateway.grpc_front.infer_values import answer_of
from pilotlight_gateway.grpc_front.model_answers import GrpcServices, ModelAnswers
from pilotlight_gateway.http.inference.front_operations import READS
from pilotlight_gateway.http.inference.inference_counts import CountedModel
from pilotlight_gateway.http.inference.model_endpoints import check_ready, not_offered, versions_of
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.inference.model_views import config_view, model_view, server_view, statistics_view
from pilotlight_gateway.http.protocol.http_exchange import new_request_id
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.tenancy.auth import NOBODY, Principal

MOST_ASKED = 64 * 1024
"""Bytes of a request about a model."""
FIRST_MESSAGE_S = 30.0
"""In which the one message of a unary request arrives, its tenant's turn included."""
ARRIVING = 16
"""Such messages of one tenant at a time: the memory of each is counted only once all of it is there."""
STUCK_S = 60.0
"""A client that reads nothing of its one answer for so long counts as gone."""
REFUSED = (
    "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload", "SystemSharedMemoryStatus",
    "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister", "CudaSharedMemoryStatus", "CudaSharedMemoryRegister",
    "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings",
)  # fmt: skip

RpcWork = Callable[[InferMessage, Principal], Awaitable[InferMessage]]
OfModel = Callable[[FoundModel, Principal], InferMessage]


class InferenceService:
    """Answers requests; errors are statuses."""

    def __init__(self, services: GrpcServices) -> None:
        self._services = services
        self._models = services.models
        self._answers = ModelAnswers(services)
        # As many as the server takes at all: no tenant holds all of them.
        self._open = TenantSlots(1_024, "requests over gRPC are open", of_tenant=512, retry_after=1.0)
        self._arriving: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def handler(self) -> Any:
        """What a server is given."""
        opened: dict[str, RpcWork] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ServerMetadata": self._server,
        }
        guarded: dict[str, RpcWork] = {
            "ModelReady": self._of_model(self._model_ready),
            "ModelMetadata": self._of_model(self._metadata),
            "ModelConfig": self._of_model(_config),
            "ModelStatistics": self._statistics,
        }
        handlers = {name: self._unary(name, work, is_open=True) for name, work in opened.items()}
        handlers |= {name: self._unary(name, work) for name, work in guarded.items()}
        for name in REFUSED:
            handlers[name] = grpc.stream_stream_rpc_method_handler(_refusing(name))
        handlers["ModelInfer"] = grpc.stream_stream_rpc_method_handler(self._infer)
        handlers["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(self._stream_infer)
        return grpc.method_handlers_generic_handler(SERVICE, handlers)

    async def _infer(self, requests: AsyncIterator[bytes], context: Context) -> None:
        request_id = new_request_id()
        async with report_errors(context, lambda: request_id):
            principal = await self._caller(context, "invoke")
            with self._open.slot(principal.tenant), self._answers.opened(principal) as request:
                request_id = request.request_id
                data = await self._only_message(requests, principal.tenant)
                answers: Any = self._answers.run(
                    request, data, headers_of(context), left_s=seconds_left(context), only_one=True
                )
                del data
                async with aclosing(answers):
                    async for answer in answers:
                        request_id = request.request_id
                        if answer.tensors is not None:
                            whole = answer_of(answer.model, answer.client_id, answer.tensors)
                            await send_only_answer(context, whole)

    async def _stream_infer(self, requests: AsyncIterator[bytes], context: Context) -> None:
        request_id = new_request_id()
        async with report_errors(context, lambda: request_id):
            principal = await self._caller(context, "invoke")
            await InferStream(self._services, self._answers, principal, context).serve(requests)

    async def _caller(self, context: Context, *scopes: str) -> Principal:
        principal = await principal_of(context, self._models.calls.entry.authenticator)
        principal.require(*scopes)
        return principal

    async def _only_message(self, requests: AsyncIterator[bytes], tenant: str) -> bytes:
        """The message of a unary request.

        Raises:
            DeadlineExceeded: it does not come. BadInput: there is none.
        """
        turn = self._arriving.setdefault(tenant, asyncio.Semaphore(ARRIVING))
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S), turn:
                async for data in requests:
                    return data
        except TimeoutError:
            raise DeadlineExceeded("The request did not arrive in time.", code="slow_body") from None
        raise BadInput("There is no request.", code="bad_request")

    def _unary(self, name: str, work: RpcWork, *, is_open: bool = False) -> Any:
        kind = message_class(f"{name}Request")

        async def serve(requests: AsyncIterator[bytes], context: Context) -> None:
            request_id = new_request_id()
            async with report_errors(context, lambda: request_id):
                if is_open:
                    await send_only_answer(context, await work(kind(), NOBODY))
                    return
                principal = await self._caller(context, *READS)
                self._services.rates.take_request(principal.tenant)
                with self._open.slot(principal.tenant):
                    message = _read(kind, await self._only_message(requests, principal.tenant))
                    await send_only_answer(context, await work(message, principal))

        return grpc.stream_stream_rpc_method_handler(serve)

    def _of_model(self, show: OfModel) -> RpcWork:
        async def work(message: InferMessage, principal: Principal) -> InferMessage:
            return show(await self._find(principal, message), principal)

        return work

    async def _find(self, principal: Principal, message: InferMessage) -> FoundModel:
        return await self._models.calls.lookup.find(principal.tenant, message.name, message.version)

    async def _live(self, _message: InferMessage, _principal: Principal) -> InferMessage:
        return message_class("ServerLiveResponse")(live=True)

    async def _ready(self, _message: InferMessage, _principal: Principal) -> InferMessage:
        return message_class("ServerReadyResponse")(ready=not self._models.readiness.why_not())

    async def _server(self, _message: InferMessage, _principal: Principal) -> InferMessage:
        return message_of("ServerMetadataResponse", server_view(self._models.release))

    async def _statistics(self, message: InferMessage, principal: Principal) -> InferMessage:
        counts = self._models.calls.counts
        if message.name:
            model = await self._find(principal, message)
            counted = CountedModel(principal.tenant, model.name, model.number)
            found = [(counted, counts.of_model(counted))]
        else:
            found = counts.of_tenant(principal.tenant)
        return message_of("ModelStatisticsResponse", {"model_stats": [statistics_view(*one) for one in found]})

    def _model_ready(self, _model: FoundModel, _principal: Principal) -> InferMessage:
        check_ready(self._models.readiness)
        return message_class("ModelReadyResponse")(ready=True)

    def _metadata(self, model: FoundModel, _principal: Principal) -> InferMessage:
        return message_of("ModelMetadataResponse", model_view(model, versions_of(self._models.registry, model)))


def _config(model: FoundModel, _principal: Principal) -> InferMessage:
    view = config_view(model)
    for part in ("input", "output"):
        view[part] = [one | {"data_type": CONFIG_TYPES[one["data_type"]]} for one in view[part]]
    return message_of("ModelConfigResponse", {"config": view})


def _refusing(name: str) -> Callable[[AsyncIterator[bytes], Context], Awaitable[None]]:
    async def refuse(_requests: AsyncIterator[bytes], context: Context) -> None:
        async with report_errors(context, new_request_id):
            raise not_offered(name)

    return refuse


def _read(kind: InferMessage, data: bytes) -> InferMessage:
    if len(data) > MOST_ASKED:
        raise BadInput(f"The request has {len(data)} bytes, {MOST_ASKED} are the most.", code="too_large")
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise BadInput(f"The request cannot be read: {error}.", code="bad_request") from None


async def send_only_answer(context: Context, answer: InferMessage) -> None:
    """Send the one answer of a request. Raises DeadlineExceeded: its client does not read."""
    try:
        async with asyncio.timeout(STUCK_S):
            await context.write(answer.SerializeToString())
    except TimeoutError:
        raise DeadlineExceeded(f"The client has read nothing for {STUCK_S:g} s.", code="slow_body") from None
