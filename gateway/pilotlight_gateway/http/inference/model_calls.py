"""The steps of a call of tensors, over HTTP and gRPC: those of every call, between a request and its answer of tensors.

Whoever uses them authenticates the caller, enters the gate, and releases the request's limits in the end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any

from msgspec import UNSET

from pilotlight_core.model.engines.engine_spec import GENERATE
from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.calls.call_port import CallPort, CallResult, ChunkEvent
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.call_endpoint import CallEntry
from pilotlight_gateway.http.calls.call_head import CallHead, split_headers
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, AdmittedRequest, function_of
from pilotlight_gateway.http.inference.inference_counts import CountedModel, InferenceCounts
from pilotlight_gateway.http.inference.model_lookup import FoundModel, ModelLookup
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits
from pilotlight_gateway.http.protocol.trace_headers import trace_headers
from pilotlight_gateway.tensors.infer_requests import InferCall
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor, check_wanted


class ModelCalls:
    """Makes and runs calls of models. `clock`: monotonic seconds."""

    def __init__(
        self,
        entry: CallEntry,
        calls: CallPort,
        codec: BodyCodec,
        lookup: ModelLookup,
        counts: InferenceCounts,
        clock: Callable[[], float],
    ) -> None:
        self.entry = entry
        self.codec = codec
        self.lookup = lookup
        self.counts = counts
        self.clock = clock
        self.new_id = calls.new_id
        self._calls = calls

    async def admit(self, request: AdmittedRequest, model: FoundModel) -> BodyLimits:
        """Count a call under its tenant's limits; the limits of its body. Raises as `CallLimits.admit`."""
        return await self.entry.limits.admit(request, model.version, CALL_BODY, LimitAskKind.CALL)

    def home_of(self, model: FoundModel) -> bytes:
        """Where clients reach the home of a model's function; b"": it is here, or not known."""
        return self._calls.address_of_home(function_of(model.version))

    async def prepare(
        self, request: AdmittedRequest, model: FoundModel, asked: InferCall, sent: Iterable[tuple[bytes, bytes]] = ()
    ) -> PreparedCall:
        """The call that an admitted request asks for; what it may cost is reserved.

        `sent`: the headers that the request came with, their names in lower case.

        Raises:
            BadInput: naming what is wrong. TooMuch, BudgetExhausted, Unavailable.
        """
        check_wanted(asked.wanted, model.method)
        sent = tuple(sent)
        headers = (
            split_headers(sent)
            | trace_headers(sent)
            | {
                b"content-type": BodyFormat.MSGPACK.value,
                b"pilotlight-priority": asked.priority.encode(),
            }
        )
        limits, admission = self.entry.limits, request.admission
        head = CallHead(headers, model.ref, b"")
        call = (await self.entry.reader.prepare(request, head, model.version, asked.body))[1]
        await limits.count_tokens(request, call)
        if admission is not None and admission.policy.budgets:
            await limits.reserve(admission, call)
        return call

    async def run(self, call: PreparedCall, model: FoundModel, asked: InferCall) -> list[WrittenTensor]:
        """Run a call to its end; its answer as tensors.

        Raises:
            BadInput: the function answers more than once. PilotlightError: how the call failed.
        """
        refuse_streams(model)
        try:
            result = await self._calls.run(call)
            tensors = await self._tensors(result.output, call, asked)
        except PilotlightError as error:
            raise self._failed(error, call, model) from None
        self._note(call, model, result)
        return tensors

    async def stream(
        self, call: PreparedCall, model: FoundModel, asked: InferCall
    ) -> AsyncIterator[list[WrittenTensor]]:
        """Run a call; its answers as they come: of a generator one for each chunk.

        Closing the iterator cancels the call. Raises as `run`.
        """
        if not model.streams:
            yield await self.run(call, model, asked)
            return
        try:
            events: Any = self._calls.stream(call)
            async with aclosing(events):
                async for bunch in events:
                    for event in bunch:
                        if isinstance(event, ChunkEvent):
                            self.entry.recorder.chunks(call, 1)
                            yield await self._tensors(event.data, call, asked)
                        elif isinstance(event, CallResult):
                            self._note(call, model, event)
        except PilotlightError as error:
            raise self._failed(error, call, model) from None

    async def _tensors(self, output: bytes, call: PreparedCall, asked: InferCall) -> list[WrittenTensor]:
        return await self.codec.output_tensors(output, call.version.id, call.method, asked, call.tenant)

    def _note(self, call: PreparedCall, model: FoundModel, result: CallResult) -> None:
        total_ms, stages = self._total_ms(call), dict(result.stages)
        stages["respond"] = max(0.0, total_ms - sum(stages.values()))
        self.entry.recorder.call_ended(call, result, stages, total_ms)
        self.counts.note_success(_counted(call, model), total_ms, stages)

    def _failed(self, error: PilotlightError, call: PreparedCall, model: FoundModel) -> PilotlightError:
        self.counts.note_failure(_counted(call, model), self._total_ms(call))
        return redact_for_caller(error, call)

    def _total_ms(self, call: PreparedCall) -> float:
        return (self.clock() - call.arrived_at) * 1000


def refuse_streams(model: FoundModel) -> None:
    """Raises BadInput: the function answers more than once, and its client reads one answer."""
    if model.streams:
        raise BadInput(
            f"{model.name} is a generator, and answers more than once: call it with ModelStreamInfer over gRPC, or as "
            "POST /v1/functions/{ref}/calls with 'Accept: text/event-stream'.",
            field="model",
        )


def refuse_generation(model: FoundModel) -> None:
    """Raises BadInput: it is an engine that generates text, whose answers are documents and no tensors."""
    if model.version.spec.engine is not UNSET and model.method.name == GENERATE:
        raise BadInput(
            f"{model.name} generates text, which is no tensor: POST /v1/chat/completions or /v1/completions, with "
            f'"model": "{model.name}".',
            field="model",
        )


def _counted(call: PreparedCall, model: FoundModel) -> CountedModel:
    return CountedModel(call.tenant, model.name, model.number)
