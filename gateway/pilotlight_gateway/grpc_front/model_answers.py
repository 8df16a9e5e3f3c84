"""One request for tensors, from its bytes to its answers: what ModelInfer and ModelStreamInfer have in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError

from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_gateway.grpc_front.grpc_requests import GrpcRequest
from pilotlight_gateway.grpc_front.infer_messages import InferMessage, message_class
from pilotlight_gateway.grpc_front.infer_values import request_of
from pilotlight_gateway.http.inference.model_calls import refuse_generation, refuse_streams
from pilotlight_gateway.http.inference.model_endpoints import TensorModelServices
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.http.protocol.http_exchange import OpenRequests
from pilotlight_gateway.http.protocol.request_bodies import too_large
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.tenant_slots import TenantSlots
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

REQUEST = message_class("ModelInferRequest")


@dataclass(frozen=True, kw_only=True)
class GrpcServices:
    """What the methods stand on."""

    models: TensorModelServices
    rates: ApiRates
    requests: OpenRequests
    streams: TenantSlots
    clock: Callable[[], float]
    """Monotonic seconds."""


class ModelAnswer(NamedTuple):
    """One answer to a request; `tensors` None: there are no more."""

    model: FoundModel
    client_id: str
    tensors: list[WrittenTensor] | None
    tells_end: bool


class ModelAnswers:
    """Carries out requests for tensors."""

    def __init__(self, services: GrpcServices) -> None:
        self._services = services

    @contextmanager
    def opened(self, principal: Principal) -> Iterator[GrpcRequest]:
        """A request of the current task, which ends with its key, and counts under its tenant's limits until then."""
        services = self._services
        request, entry = GrpcRequest(principal, services.clock()), services.models.calls.entry
        services.requests.add(request)
        try:
            yield request
        except asyncio.CancelledError:
            if (why := request.was_revoked()) is None:
                raise
            entry.recorder.request_failed(why, request)
            raise why from None
        except PilotlightError:
            raise
        except Exception:
            entry.recorder.request_failed(PilotlightError(code="internal"), request)
            raise
        finally:
            services.requests.remove(request)
            entry.recorder.client_gone(request)  # if it was cancelled
            entry.limits.release(request)

    async def run(
        self,
        request: GrpcRequest,
        data: bytes,
        sent: tuple[tuple[bytes, bytes], ...] = (),
        *,
        left_s: float | None = None,
        only_one: bool = False,
    ) -> AsyncIterator[ModelAnswer]:
        """The answers to the request in `data`.

        Args:
            sent: what came with it, as headers.
            left_s: the seconds for which its client waits; None: as long as it takes.
            only_one: whether the client reads one answer only.

        Raises:
            PilotlightError: what is wrong, or how the call failed.
        """
        calls, tenant = self._services.models.calls, request.principal.tenant
        entry = calls.entry
        with entry.gate.around(request.task), entry.budget.holding(len(data), tenant):
            try:
                message = self._read(data, tenant)
                model = await calls.lookup.find(tenant, message.model_name, message.model_version)
                limits = await calls.admit(request, model)
                refuse_generation(model)
                if only_one:
                    refuse_streams(model)
                if len(data) > limits.size:
                    raise too_large(limits)
                asked = await calls.codec.infer_call(await request_of(message), model.method, tenant)
                del message
                request.begin_call(calls.new_id())
                call = await calls.prepare(request, model, asked, sent)
                if left_s is not None:
                    call.deadline_at = min(call.deadline_at, request.arrived_at + left_s)
                answers: Any = calls.stream(call, model, asked)
                async with aclosing(answers):
                    async for tensors in answers:
                        yield ModelAnswer(model, asked.id, tensors, asked.tells_end)
                yield ModelAnswer(model, asked.id, None, asked.tells_end)
            except PilotlightError as error:
                entry.recorder.request_failed(error, request)
                raise

    def _read(self, data: bytes, tenant: str) -> InferMessage:
        """The request; what is none is not let in as a call, and counts as another request of its tenant."""
        try:
            return REQUEST.FromString(data)
        except DecodeError as error:
            self._services.rates.take_request(tenant)
            raise BadInput(f"The request is no ModelInferRequest: {error}.", code="bad_request") from None
