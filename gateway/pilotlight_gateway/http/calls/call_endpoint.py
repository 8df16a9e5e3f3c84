"""`POST /v1/functions/{ref}/calls`: the one path that must be lean.

It is a plain ASGI application: the request's head is read once, a warm call creates no task and no timer beyond two
handles, and validators, refs and keys come from memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.calls.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import PreparedCall
from pilotlight_gateway.calls.call_requests import BodyFormat, format_of_answer, format_of_body
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.calls.call_limits import CallLimits
from pilotlight_gateway.http.calls.call_reader import CallReader
from pilotlight_gateway.http.calls.call_stream import StreamedCalls
from pilotlight_gateway.http.calls.keyed_call_answers import KeyedCallAnswers
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.http.endpoints.jobs import JobServices, accept_job, refuse_job_fields, wants_async
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.http_exchange import exchange_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body
from pilotlight_gateway.idempotency.key_header import KEY, PREFER
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.tenancy.auth import Authenticator

PREFIX = "/v1/functions/"
SUFFIX = "/calls"
CALL_BODY = BodyLimits(size=10 * 10**6 + 64 * 1024)
"""10 MB of payload and what stands around it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEntry:
    """What a request passes before its call runs."""

    authenticator: Authenticator
    gate: DrainGate
    resolver: Resolver
    limits: CallLimits
    reader: CallReader
    budget: ByteBudget
    metrics: GatewayMetrics


class CallEndpoint:
    """Takes calls, and has them answered: whole, as a stream, once for a key, or as a job."""

    def __init__(
        self,
        entry: CallEntry,
        *,
        unary: UnaryCalls,
        streamed: StreamedCalls,
        keyed: KeyedCallAnswers,
        jobs: JobServices,
    ) -> None:
        self._entry = entry
        self._unary = unary
        self._streamed = streamed
        self._keyed = keyed
        self._jobs = jobs

    @staticmethod
    def serves(scope: Scope) -> bool:
        """Whether a request is for this endpoint."""
        path: str = scope["path"]
        return (
            scope["method"] == "POST"
            and len(path) > len(PREFIX) + len(SUFFIX)
            and path.startswith(PREFIX)
            and path.endswith(SUFFIX)
            and "/" not in path[len(PREFIX) : -len(SUFFIX)]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - the exchange sends
        entry, exchange = self._entry, exchange_of(scope)
        exchange.route = "/v1/functions/{ref}/calls"
        headers = dict(scope["headers"])
        principal = exchange.principal = await entry.authenticator.authenticate(headers.get(b"authorization", b""))
        principal.require("invoke")
        answer = format_of_answer(headers.get(b"accept", b""))
        kind = format_of_body(headers.get(b"content-type", b""))
        with entry.gate.around(exchange.task):
            version = await entry.resolver.resolve(principal.tenant, scope["path"][len(PREFIX) : -len(SUFFIX)])
            as_job = wants_async(headers.get(PREFER, b""))
            part = LimitAskKind.SUBMISSION if as_job else LimitAskKind.CALL
            limits = await entry.limits.admit(exchange, version, CALL_BODY, part)
            body = await read_body(scope, receive, limits, entry.budget, principal.tenant)
            size = len(body)
            try:
                exchange.call_id = self._unary.new_id()
                request, call = await entry.reader.prepare(scope, headers, version, body, kind, answer)
                del body  # from here on `call.input` is what is held
                if as_job:
                    await accept_job(self._jobs, call, request, answer, scope, headers)
                    return
                refuse_job_fields(request)
                if KEY in headers:
                    work = partial(self._unary.body, call, answer, exchange)
                    await self._keyed.answer(call, answer, scope, work)
                else:
                    await self._run(call, answer, scope, receive)
            except PilotlightError as error:
                entry.metrics.call_failed(error.wire_code)
                raise
            finally:
                entry.budget.give_back(size, principal.tenant)

    async def _run(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        try:
            if answer is BodyFormat.EVENTS:
                await self._streamed.answer(call, scope, receive)
            else:
                await self._unary.answer(call, answer, scope, receive)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None
