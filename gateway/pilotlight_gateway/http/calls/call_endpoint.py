"""`POST /v1/functions/{ref}/calls`, where something has to be waited for: a plain ASGI application.

Warm calls do without it (`warm_call`). The steps are the same, and so is the code of each once nothing is awaited.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_gateway.audit.audit_log import AuditLog
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, refuse_job_fields
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.deploys.called_versions import CalledVersions
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.calls.call_head import CallHead, call_headers
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, CallLimits, function_of
from pilotlight_gateway.http.calls.call_reader import CallReader
from pilotlight_gateway.http.calls.call_stream import StreamedCalls
from pilotlight_gateway.http.calls.keyed_call_answers import KeyedCallAnswers
from pilotlight_gateway.http.calls.stream_money import STEP_S, StreamSteps
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.http.endpoints.jobs import JobServices, accept_job
from pilotlight_gateway.http.protocol.audited_changes import NamedParameter, make_audited
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.http_exchange import Exchange, authorization, exchange_of
from pilotlight_gateway.http.protocol.request_bodies import read_body
from pilotlight_gateway.idempotency.key_header import KEY, PREFER
from pilotlight_gateway.metrics.call_recorder import CallRecorder
from pilotlight_gateway.tenancy.auth import CallAuthenticator

ROUTE = "/v1/functions/{ref}/calls"
PREFIX = "/v1/functions/"
SUFFIX = "/calls"
ASYNC = re.compile(rb"(?:^|[,;])\s*respond-async\s*(?:$|[,;=])", re.IGNORECASE)
LONGEST_PREFER = 1_024
"""Bytes of a Prefer header that are read."""


class CallOperation(NamedTuple):
    """What the audit log says of a call that a break-glass key has tried."""

    name: str = "callFunction"
    tells: tuple[str, ...] = ()
    parameters: Sequence[NamedParameter] = ()


def wants_async(prefer: bytes) -> bool:
    """Whether a request prefers an answer before it is carried out (RFC 7240)."""
    return prefer == b"respond-async" or ASYNC.search(prefer[:LONGEST_PREFER]) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEntry:
    """The parts of the endpoint that every request passes."""

    authenticator: CallAuthenticator
    gate: DrainGate
    resolver: Resolver
    versions: CalledVersions
    limits: CallLimits
    reader: CallReader
    budget: ByteBudget
    recorder: CallRecorder
    audit: AuditLog


class CallEndpoint:
    """Takes calls, which are answered whole, as a stream, once for a key, or as a job."""

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
        exchange.route = ROUTE
        headers, key = call_headers(scope["headers"]), authorization(scope)
        principal = await entry.authenticator.authenticate(key)
        exchange.note_principal(principal)
        if principal.break_glass:
            await self._refuse_audited(scope, exchange)
        principal.require("invoke")
        head = CallHead(headers, scope["path"][len(PREFIX) : -len(SUFFIX)], key)
        answer = head.answer
        with entry.gate.around(exchange.task):
            version = await entry.versions.find(principal.tenant, head.ref)
            as_job = PREFER in headers and wants_async(headers[PREFER])
            part = LimitAskKind.SUBMISSION if as_job else LimitAskKind.CALL
            limits = await entry.limits.admit(exchange, version, CALL_BODY, part)
            body = await read_body(scope, receive, limits, entry.budget, principal.tenant)
            size = len(body)
            try:
                exchange.begin_call(self._unary.new_id())
                exchange.home = self._unary.address_of_home(function_of(version))
                request, call = await entry.reader.prepare(exchange, head, version, body, as_job=as_job)
                del body  # from here on `call.input` is what is held
                if as_job:
                    entry.limits.limit_tokens(call)
                    await accept_job(self._jobs, call, request, answer, scope, headers)
                    return
                refuse_job_fields(request)
                await entry.limits.count_tokens(exchange, call)
                admission = exchange.admission
                if admission is not None and admission.policy.budgets and KEY not in headers:
                    await entry.limits.reserve(admission, call, STEP_S if answer is BodyFormat.EVENTS else None)
                if KEY in headers:
                    await self._keyed.answer(call, answer, scope, partial(self._work, call, answer, exchange))
                    entry.recorder.call_withdrawn(call)
                else:
                    await self._run(call, answer, scope, receive)
            except PilotlightError as error:
                entry.recorder.request_failed(error, exchange)
                raise
            finally:
                entry.budget.give_back(size, principal.tenant)

    async def _refuse_audited(self, scope: Scope, exchange: Exchange) -> None:
        """Write down that a key that calls nothing has tried to."""

        async def refuse() -> Response | None:
            exchange.principal.require("invoke")
            return None

        named = {**scope, "path_params": {"ref": scope["path"][len(PREFIX) : -len(SUFFIX)]}}
        await make_audited(self._entry.audit, CallOperation(), named, exchange, refuse)

    async def _work(self, call: PreparedCall, answer: BodyFormat, exchange: Exchange) -> bytes:
        """Run the first call of a key; those that are answered as it was cost nothing."""
        if (admission := exchange.admission) is not None and admission.policy.budgets:
            await self._entry.limits.reserve(admission, call)
        return await self._unary.body(call, answer, exchange.request_id)

    async def _run(self, call: PreparedCall, answer: BodyFormat, scope: Scope, receive: Receive) -> None:
        try:
            if answer is BodyFormat.EVENTS:
                await self._stream(call, scope, receive)
            else:
                await self._unary.answer(call, answer, scope, receive)
        except PilotlightError as error:
            raise redact_for_caller(error, call) from None

    async def _stream(self, call: PreparedCall, scope: Scope, receive: Receive) -> None:
        exchange = exchange_of(scope)
        admission = exchange.admission
        if admission is None or not admission.money:
            await self._streamed.answer(call, scope, receive)
            return
        steps = StreamSteps(self._entry.limits, admission, call, exchange)
        steps.start()
        try:
            await self._streamed.answer(call, scope, receive)
        finally:
            steps.stop()
