"""`POST /v1/functions/{ref}/calls`: a plain ASGI application.

It is lean: a request's head is read once, a warm call creates no task and two timer handles, and validators, refs and
keys come from memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from starlette.types import Receive, Scope, Send

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import Mode, VersionRecord
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import (
    BodyFormat,
    format_of_answer,
    format_of_body,
    priority_of,
    refuse_job_fields,
    seconds_to_wait,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall, scheduling_class_of
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.deploys.resolver import Resolver
from pilotlight_gateway.http.calls.call_stream import StreamedCalls
from pilotlight_gateway.http.calls.keyed_call_answers import KeyedCallAnswers
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.http.endpoints.jobs import JobServices, accept_job
from pilotlight_gateway.http.protocol.drain_gate import DrainGate
from pilotlight_gateway.http.protocol.http_exchange import Exchange, authorization, exchange_of
from pilotlight_gateway.http.protocol.request_bodies import BodyLimits, read_body
from pilotlight_gateway.idempotency.key_header import KEY, PREFER
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.cost_estimates import Estimates
from pilotlight_gateway.limits.limit_admission import Admission, end_admission
from pilotlight_gateway.limits.limits_port import Limiter
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.auth import Authenticator
from pilotlight_gateway.tenancy.registry_port import RegistryPort
from pilotlight_gateway.tenancy.timeout_limit import check_job_time, check_seconds

PREFIX = "/v1/functions/"
SUFFIX = "/calls"
CALL_BODY = BodyLimits(size=10 * 10**6 + 64 * 1024)
"""10 MB of payload and its framing."""
ASYNC = re.compile(rb"(?:^|[,;])\s*respond-async\s*(?:$|[,;=])", re.IGNORECASE)
LONGEST_PREFER = 1_024
"""Bytes of a Prefer header that are read."""


def wants_async(prefer: bytes) -> bool:
    """Whether a request prefers an answer before it is carried out (RFC 7240)."""
    return prefer == b"respond-async" or ASYNC.search(prefer[:LONGEST_PREFER]) is not None


class CallLimits:
    """Applies the limits of tenants to requests."""

    def __init__(self, limiter: Limiter, costs: Estimates, metrics: GatewayMetrics) -> None:
        self._limiter = limiter
        self._costs = costs
        self._metrics = metrics

    async def admit(
        self, exchange: Exchange, version: VersionRecord, body: BodyLimits, part: LimitAskKind
    ) -> BodyLimits:
        """Count a call under its tenant's limits. Returns the limits of its body. Then call `release` in any case.

        Raises:
            TooMuch: `rate_limited`, naming the limit.
            Unavailable: the home of the tenant's limits does not answer.
        """
        tenant = exchange.principal.tenant
        function = f"{version.tenant}:{version.app}.{version.function}"
        policy = self._limiter.policy(tenant, function)
        if policy.counts_requests if part is LimitAskKind.SUBMISSION else policy.scopes:
            exchange.version = version.id
            cost = self._costs.of(version.id) if policy.most_cost else 0.0
            admission = exchange.admission = await self._limiter.admit(tenant, function, policy, cost, part)
            if admission.error is not None:
                self._metrics.call_failed(admission.error.wire_code)
                raise admission.error
        return body if policy.payload is None else _at_most(body, policy.payload)

    async def admit_tokens(self, exchange: Exchange, first: Admission) -> None:
        """Count the tokens of a call that was let in and has been read, as many as earlier ones of its version took.

        Raises:
            TooMuch, Unavailable: as `admit` does.
        """
        tokens = self._costs.tokens_of(exchange.version)
        first.tokens = second = await self._limiter.admit(
            first.tenant, first.function, first.policy, tokens, LimitAskKind.TOKENS
        )
        if second.error is not None:
            raise second.error

    def release(self, exchange: Exchange) -> None:
        """Once the call of an exchange runs no more, give its permit back and count its cost."""
        if (admission := exchange.admission) is None:
            return
        if exchange.usage is None:
            admission.end(0.0)  # it cannot have run
        else:
            exchange.usage.settle(
                partial(end_admission, admission=admission, costs=self._costs, version=exchange.version)
            )


def usage_of_call(exchange: Exchange) -> CallUsage | None:
    """A counter for a call's cost; None if its tenant has no limits."""
    if exchange.admission is not None:
        exchange.usage = CallUsage()
    return exchange.usage


@lru_cache(1024)
def _at_most(body: BodyLimits, size: int) -> BodyLimits:
    return BodyLimits(size=min(body.size, size), grace=body.grace, rate=body.rate)


class CallReader:
    """Makes calls of requests. `clock`: monotonic seconds."""

    def __init__(
        self, registry: RegistryPort, schemas: VersionSchemas, codec: BodyCodec, clock: Callable[[], float]
    ) -> None:
        self._registry = registry
        self._schemas = schemas
        self._codec = codec
        self._clock = clock

    async def prepare(
        self,
        scope: Scope,
        headers: dict[bytes, bytes],
        version: VersionRecord,
        body: bytes,
        kind: BodyFormat,
        answer: BodyFormat,
        *,
        as_job: bool = False,
    ) -> tuple[CallRequest, PreparedCall]:
        """The request, and the call that it asks for.

        Raises:
            BadInput: `bad_request`, or naming the field.
            BlobsDown: the schemas of the version cannot be read.
        """
        exchange, spec = exchange_of(scope), version.spec
        tenant = exchange.principal.tenant
        whole = await self._schemas.whole(version) if version.schemas_apart else version
        request, method, arguments = await self._codec.read_call(body, kind, whole, tenant)
        scheduling = scheduling_class_of(self._registry, tenant, f"{version.tenant}:{version.app}.{version.function}")
        wait_s = seconds_to_wait(request.deadline_ms, spec.longest_call_s)
        if as_job:
            check_job_time(self._registry, tenant, version)
        elif request.deadline_ms is None:
            wait_s = min(wait_s, scheduling.longest_s)
        else:
            check_seconds(wait_s, scheduling.longest_s, tenant, "deadline_ms")
        call = PreparedCall(
            call_id=exchange.call_id,
            client_id=request.id,
            tenant=tenant,
            version=version,
            method=method,
            input=arguments,
            priority=scheduling.lowered(priority_of(spec.priority, headers.get(b"pilotlight-priority", b""))),
            scheduling=scheduling,
            deadline_at=exchange.arrived_at + wait_s,
            arrived_at=exchange.arrived_at,
            stream=answer is BodyFormat.EVENTS or method.mode is not Mode.UNARY,
            traceparent=headers.get(b"traceparent", b"")[:64].decode("latin-1"),
            key=exchange.principal.key_id,
            gateway_ms=(self._clock() - exchange.arrived_at) * 1000,
            usage=usage_of_call(exchange),
        )
        return request, call


@dataclass(frozen=True, kw_only=True, slots=True)
class CallEntry:
    """The parts of the endpoint that every request passes."""

    authenticator: Authenticator
    gate: DrainGate
    resolver: Resolver
    limits: CallLimits
    reader: CallReader
    budget: ByteBudget
    metrics: GatewayMetrics


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
        exchange.route = "/v1/functions/{ref}/calls"
        headers = dict(scope["headers"])
        principal = await entry.authenticator.authenticate(authorization(scope))
        exchange.note_principal(principal)
        principal.require("invoke")
        answer = format_of_answer(headers.get(b"accept", b""))
        kind = format_of_body(headers.get(b"content-type", b""))
        with entry.gate.around(exchange.task):
            version = await entry.resolver.resolve(principal.tenant, scope["path"][len(PREFIX) : -len(SUFFIX)])
            as_job = PREFER in headers and wants_async(headers[PREFER])
            part = LimitAskKind.SUBMISSION if as_job else LimitAskKind.CALL
            limits = await entry.limits.admit(exchange, version, CALL_BODY, part)
            body = await read_body(scope, receive, limits, entry.budget, principal.tenant)
            size = len(body)
            try:
                exchange.begin_call(self._unary.new_id())
                request, call = await entry.reader.prepare(scope, headers, version, body, kind, answer, as_job=as_job)
                del body  # from here on `call.input` is what is held
                if as_job:
                    await accept_job(self._jobs, call, request, answer, scope, headers)
                    return
                refuse_job_fields(request)
                if (admission := exchange.admission) is not None and admission.policy.most_tokens:
                    await entry.limits.admit_tokens(exchange, admission)
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
