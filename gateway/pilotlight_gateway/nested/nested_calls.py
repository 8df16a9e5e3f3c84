"""Carries out one nested call, as calls over HTTP are: limits, schema, queue, money and receipt are the same.

It is made in the name of its parent's tenant and with its parent's key, which is checked anew. The names in a function
are its owner's: what it names must be callable for the owner and for the tenant that pays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from pilotlight_core.model.errors import BadInput, PilotlightError, TooMuch, Unauthenticated, UnknownFunction
from pilotlight_core.model.ids import Ref
from pilotlight_core.model.messages.agent_questions import AskNested
from pilotlight_core.model.messages.limiting import LimitAskKind
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.tracing.trace_context import context_within
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.bodies.call_requests import BodyFormat, refuse_job_fields
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller, redact_for_function
from pilotlight_gateway.deploys.resolver import read_ref
from pilotlight_gateway.http.calls.call_endpoint import CallEntry
from pilotlight_gateway.http.calls.call_head import CallHead
from pilotlight_gateway.http.calls.call_limits import CALL_BODY, function_of
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.limits.api_rates import ApiRates
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.nested.nested_book import NestedBook, OpenNested
from pilotlight_gateway.nested.nested_requests import named_request
from pilotlight_gateway.nested.nested_rules import circle_fault, refused
from pilotlight_gateway.oidc.token_authenticator import HOLDER
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import TenantRegistry

HEADERS = {b"content-type": BodyFormat.MSGPACK.value, b"accept": BodyFormat.MSGPACK.value}
NO_KEY = frozenset({"invoke"})
"""What jobs' calls may that no API key asked for: those of schedules, and of an issuer's token, which has ended."""


class NestedRequest:
    """A nested call as its tenant's limits see it: an `AdmittedRequest`."""

    def __init__(self, principal: Principal, call_id: str, arrived_at: float) -> None:
        self.principal = principal
        self.call_id = call_id
        self.arrived_at = arrived_at
        self.admission: Admission | None = None
        self.version = ""
        self.called: VersionRecord | None = None
        self.call: PreparedCall | None = None
        self.usage: CallUsage | None = None


@dataclass(frozen=True, kw_only=True)
class NestedCalls:
    """Makes and runs nested calls. `clock`: monotonic seconds."""

    entry: CallEntry
    unary: UnaryCalls
    registry: TenantRegistry
    schemas: VersionSchemas
    rates: ApiRates
    why_ended: Callable[[Principal], Unauthenticated | None]
    book: NestedBook
    clock: Callable[[], float]

    @property
    def budget(self) -> ByteBudget:
        """For the bytes of requests and answers."""
        return self.entry.budget

    async def run(self, one: OpenNested, asked: AskNested, parent: PreparedCall, request_id: str) -> bytes:
        """The body of the answer to what `parent` asked.

        Raises:
            PilotlightError: how it failed.
        """
        try:
            principal, version = await self._let_in(one, asked, parent)
            return await self._limited(one, asked, parent, version, principal, request_id)
        except PilotlightError as error:
            raise redact_for_function(error, parent.version.tenant, parent.tenant) from None

    async def _let_in(self, one: OpenNested, asked: AskNested, parent: PreparedCall) -> tuple[Principal, VersionRecord]:
        """In whose name it is made, and of what; what is refused counts all the same."""
        if parent.shadow:
            raise refused("this is a shadow, and what it asked for would be done twice. Its answer is not counted.")
        try:
            principal = self.principal_of(parent)
            principal.require("invoke")
            version = await self.find_version(asked, parent)
            if (fault := circle_fault(one.lineage, function_of(version))) is not None:
                raise fault
        except PilotlightError as error:
            raise self.counted(error, parent) from None
        return principal, version

    def counted(self, refusal: PilotlightError, parent: PreparedCall) -> PilotlightError:
        """A refusal of a nested call that comes before its limits, as a request of its tenant; or that this is one too
        many.
        """
        try:
            self.rates.take_request(parent.tenant, parent.version.tenant)
        except TooMuch as error:
            return error
        return refusal

    async def _limited(
        self,
        one: OpenNested,
        asked: AskNested,
        parent: PreparedCall,
        version: VersionRecord,
        principal: Principal,
        request_id: str,
    ) -> bytes:
        request = NestedRequest(principal, self.unary.new_id(), self.clock())
        try:
            return await self._admitted(one, asked, parent, version, request, request_id)
        except PilotlightError as error:
            self.entry.recorder.request_failed(error, request)
            raise
        finally:
            self.entry.recorder.client_gone(request)  # if it was cancelled, with its parent
            self.entry.limits.release(request)

    def principal_of(self, parent: PreparedCall) -> Principal:
        """Who asked for the parent, with what its key may now.

        Raises:
            Unauthenticated: its key was revoked, has expired, or its tenant is disabled.
        """
        record, principal = self.registry.key_nowait(parent.key), parent.principal
        if principal is None:
            if not parent.key or parent.key.startswith(HOLDER):
                return Principal(tenant=parent.tenant, key_id=parent.key, scopes=NO_KEY)
            principal = Principal(tenant=parent.tenant, key_id=parent.key, scopes=frozenset())
        if record is not None:
            principal = replace(principal, scopes=frozenset(record.scopes))
        if (ended := self.why_ended(principal)) is not None:
            raise ended
        return principal

    async def find_version(self, asked: AskNested, parent: PreparedCall) -> VersionRecord:
        """The version that the parent's function names.

        Raises:
            UnknownFunction: there is none for the function's owner. TooMuch: they named too many of those.
            NestedRefused: it is not shared with the tenant that called the parent.
        """
        owner, ref, resolver = parent.version.tenant, read_ref(asked.function), self.entry.resolver
        asked_of = ref.tenant or owner
        if asked.of_app and parent.version.app != ref.app:
            with contextlib.suppress(UnknownFunction):
                return await self._shared(parent, await resolver.resolve(owner, str(of_own_app(ref, parent.version))))
            # A run has but one function: the others are those that are deployed.
        text = str(msgspec.structs.replace(ref, tenant=asked_of))
        return await self._shared(parent, await self.entry.versions.find(owner, text))

    async def _shared(self, parent: PreparedCall, version: VersionRecord) -> VersionRecord:
        """A version that the parent's owner may call, if the tenant that pays may call it too."""
        if parent.version.tenant != parent.tenant:
            try:
                await self.entry.resolver.resolve(parent.tenant, f"{function_of(version)}@{version.id}")
            except UnknownFunction:
                raise refused(
                    f"sharing: {parent.function} runs for a tenant with which {function_of(version)} is not shared. "
                    "Its owner shares it, or calls it as plain Python."
                ) from None
        return version

    async def _admitted(
        self,
        one: OpenNested,
        asked: AskNested,
        parent: PreparedCall,
        version: VersionRecord,
        request: NestedRequest,
        request_id: str,
    ) -> bytes:
        entry, tenant = self.entry, parent.tenant
        body = await entry.limits.admit(request, version, CALL_BODY, LimitAskKind.CALL)
        size = len(asked.request)
        if size > body.size:
            raise BadInput(f"The request has {size} bytes, {body.size} are the most.", code="too_large")
        with entry.budget.holding(size, tenant):
            call = await self._prepare(asked, parent, version, request)
            await entry.limits.count_tokens(request, call)
            if (admission := request.admission) is not None and admission.policy.budgets:
                await entry.limits.reserve(admission, call)
            self.book.begun(one, call.call_id, version.id)
            try:
                return await self.unary.body(call, BodyFormat.MSGPACK, request_id)
            except PilotlightError as error:
                raise redact_for_caller(error, call, parent.version.tenant) from None

    async def _prepare(
        self, asked: AskNested, parent: PreparedCall, version: VersionRecord, request: NestedRequest
    ) -> PreparedCall:
        whole = await self.schemas.whole(version)
        data = named_request(asked.request, whole)
        head = CallHead(HEADERS, asked.function, b"")
        said, call = await self.entry.reader.prepare(request, head, version, data, beside=parent.side)
        refuse_job_fields(said)
        if said.id is not None and parent.version.tenant != parent.tenant:
            raise BadInput("id: a shared function gives the calls of other tenants no names.", field="id")
        call.parent = parent.call_id
        call.traceparent = context_within(parent.call_id, parent.traceparent).text
        # The parent runs no longer than its function may, whenever its caller gives up.
        longest_at = min(parent.deadline_at, self.clock() + parent.version.spec.timeout)
        call.deadline_at = min(call.deadline_at, longest_at)
        return call


def of_own_app(ref: Ref, version: VersionRecord) -> Ref:
    """The function of this name in the app of `version`."""
    return msgspec.structs.replace(ref, tenant=version.tenant, app=version.app)
