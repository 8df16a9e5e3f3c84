"""A warm call: from its request to its answer without a task, a future or a timer.

Nearly every call finds all that it needs in memory: its key, its version, the home of its tenant's limits. Then it
waits for its result alone, and the frame that brings it writes the answer. Whatever has to be waited for before goes
through `CallEndpoint`; whatever has to be waited for after (a large answer, a client that does not read) goes on in a
task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import ClassVar

import structlog

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.spec import VersionRecord
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.call_requests import refuse_job_fields
from pilotlight_gateway.calls.call_port import BegunCall, CallResult, without_output
from pilotlight_gateway.calls.call_responses import CallAnswers
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller
from pilotlight_gateway.http.calls.call_endpoint import ROUTE, CallEntry
from pilotlight_gateway.http.calls.call_head import CallHead, is_call, plain_head
from pilotlight_gateway.http.calls.call_routes import CallRoute, CallRoutes
from pilotlight_gateway.http.calls.unary_calls import UnaryCalls
from pilotlight_gateway.http.protocol.drain_gate import draining_error
from pilotlight_gateway.http.protocol.error_dialects import Dialect
from pilotlight_gateway.http.protocol.http_exchange import (
    CLIENT_CLOSED,
    HOME,
    CallConnection,
    Edge,
    Exchange,
    OpenRequests,
    answer_error,
    header_lines,
    ids_of,
    new_request_id,
)
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.http.protocol.request_bodies import too_large
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.splits.split_calls import SplitCalls, may_move
from pilotlight_gateway.tenancy.auth import Principal

SUCCESS_HEAD = b"content-type: %s\r\ncontent-length: %d\r\nx-request-id: %s\r\npilotlight-call-id: %s"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WarmParts:
    """What warm calls need. `clock`: monotonic seconds."""

    entry: CallEntry
    calls: SplitCalls
    unary: UnaryCalls
    answers: CallAnswers
    routes: CallRoutes
    requests: OpenRequests
    edge: Edge
    clock: Callable[[], float]


class WarmCalls:
    """Takes the requests that are warm calls. The real `http_exchange.WholeRequests`."""

    def __init__(self, parts: WarmParts) -> None:
        self._parts = parts

    def serves(self, url: bytes) -> bool:
        return is_call(url)

    def read_head(self, url: bytes, headers: list[tuple[bytes, bytes]]) -> CallHead | None:
        return plain_head(url, headers)

    def take(self, connection: CallConnection, head: CallHead, body: bytes) -> bool:
        parts = self._parts
        entry = parts.entry
        principal = entry.authenticator.known(head.authorization)
        if principal is None or entry.gate.draining or not principal.may("invoke"):
            return False
        route = parts.routes.find(principal.tenant, head.ref)
        if route is None:
            return False
        connection.mark_known()
        call = WarmCall(parts, connection, principal, route, head, parts.clock())
        try:
            return call.begin(body)
        except Exception as error:
            log.exception("a request failed unexpectedly", request_id=call.request_id, route=ROUTE)
            call.end_unexpectedly(error)
            return True


class WarmCall:
    """One call. It is the `CallWaiter` of its result, and to gate and watch what an exchange and its task are."""

    __slots__ = (
        "_begun", "_connection", "_head", "_is_over", "_is_slow", "_parts", "_route", "_size", "_wrong",
        "admission", "arrived_at", "call", "call_id", "called", "home", "principal", "request_id", "revoked", "status",
        "usage", "version",
    )  # fmt: skip
    dialect: ClassVar[Dialect] = Dialect.NATIVE
    route: ClassVar[str] = ROUTE

    def __init__(
        self,
        parts: WarmParts,
        connection: CallConnection,
        principal: Principal,
        route: CallRoute,
        head: CallHead,
        arrived_at: float,
    ) -> None:
        self._parts = parts
        self._connection = connection
        self._route = route
        self._head = head
        self.call: PreparedCall | None = None
        self._begun: BegunCall | None = None
        self._size = 0
        """Of its body, in the byte budget."""
        self._is_over = False
        self._is_slow = False
        """Whether a task answers it."""
        self._wrong: PilotlightError | None = None
        """What came in between before that task began."""
        self.called: VersionRecord | None = route.version
        self.principal = principal
        self.arrived_at = arrived_at
        self.call_id = self.request_id = ""
        self.home = b""
        """See `Exchange`."""
        self.status = 0
        self.admission: Admission | None = None
        self.version = ""
        self.usage: CallUsage | None = None
        self.revoked: PilotlightError | None = None

    # -- the request -----------------------------------------------------------------------------------------------

    def begin(self, body: bytes) -> bool:
        """Begin it, or refuse it; False: somebody has to be asked, and only what `admission` says was counted."""
        entry, route, tenant = self._parts.entry, self._route, self.principal.tenant
        try:
            if not entry.limits.admit_now(self, route.version, route.function, route.policy):
                return False
            if len(body) > route.body.size:
                raise too_large(route.body)
            entry.budget.take(len(body), tenant)
        except PilotlightError as error:
            entry.recorder.request_failed(error, self)
            self._refuse(error)
            return True
        self._size = len(body)
        try:
            self.call_id = self.request_id = self._parts.unary.new_id()
            request, call = entry.reader.prepare_now(self, self._head, route.version, body, route.scheduling)
            refuse_job_fields(request)
            if route.policy.budgets and not self._reserve(call):
                return self._hand_over()
        except TooManyValues:
            return self._hand_over()
        except PilotlightError as error:
            entry.recorder.request_failed(error, self)
            self._refuse(error)
        else:
            self.call = call
            self._run(call)
        return True

    def _reserve(self, call: PreparedCall) -> bool:
        """Whether its money is reserved; else its home has to be asked."""
        return self.admission is None or self._parts.entry.limits.reserve_now(self.admission, call)

    def _hand_over(self) -> bool:
        """Let the endpoint take it, with what was counted for it."""
        entry = self._parts.entry
        entry.budget.give_back(self._size, self.principal.tenant)
        if self.call is not None:
            entry.recorder.call_withdrawn(self.call)
        self._connection.keep_admission(self.admission)
        return False

    def _run(self, call: PreparedCall) -> None:
        parts = self._parts
        parts.entry.gate.enter(self)
        parts.requests.add(self)
        self._connection.await_answer(self)
        self.home = parts.calls.address_of_home(self._route.function)
        try:
            self._begun = parts.calls.begin(call, self)
        except PilotlightError as error:
            self.failed(error)
        if self._is_over or self._is_slow:  # it was told its result within `begin`, and had nothing to end yet
            self._end_call()

    # -- its result ------------------------------------------------------------------------------------------------

    def finished(self, result: CallResult) -> None:
        self._end_call()
        call = self.call
        if self._is_over or call is None:
            return
        try:
            self._answer(call, result)
        except TooManyValues:
            unary, form = self._parts.unary, self._head.answer
            self._go_on(lambda exchange: unary.send(call, result, form, exchange))
        except PilotlightError as error:
            self.failed(error)
        except Exception as error:
            log.exception("a request failed unexpectedly", request_id=self.request_id, route=ROUTE)
            self.end_unexpectedly(error)

    def failed(self, error: PilotlightError) -> None:
        try:
            self._end_call()
            if not self._is_over and self.call is not None:
                if may_move(self.call, error):
                    self._move(self.call, error)
                    return
                error = redact_for_caller(error, self.call)
                self._parts.entry.recorder.call_failed(error, self.call)
                self._refuse(error)
        except Exception as unexpected:
            log.exception("a request failed unexpectedly", request_id=self.request_id, route=ROUTE)
            self.end_unexpectedly(unexpected)

    def _move(self, call: PreparedCall, error: PilotlightError) -> None:
        """Let another version of its rollout run it, in a task."""
        calls, unary, form = self._parts.calls, self._parts.unary, self._head.answer

        async def run_again(exchange: Exchange) -> None:
            await unary.send(call, await calls.run_again(call, error), form, exchange)

        self._go_on(run_again)

    def _answer(self, call: PreparedCall, result: CallResult) -> None:
        parts, form = self._parts, self._head.answer
        pieces, latency = parts.answers.render_now(call, result, form, self.request_id)
        body = pieces[0]
        if len(body) > PIECE_BYTES:
            unary, without = parts.unary, without_output(result)
            self._go_on(lambda exchange: unary.send_body(exchange, call, form, pieces, latency, without))
            return
        parts.entry.recorder.call_ended(call, result, latency.stages, latency.total_ms)
        self.status = 200
        if self._connection.answer(200, self._success_head(form.value, len(body)), body):
            self._over()
        else:
            self._go_on(lambda exchange: exchange.answer(200, [(b"content-type", form.value)], body))

    def _success_head(self, media_type: bytes, size: int) -> bytes:
        """The same headers, in the same order, as `header_lines` makes of an exchange's."""
        name = self.call_id.encode()
        head = SUCCESS_HEAD % (media_type, size, name, name)
        if self.home:
            head += b"\r\n%s: %s" % (HOME, self.home)
        if self.admission is None:
            return head
        return b"\r\n".join([head, *[key + b": " + value for key, value in self.admission.headers()]])

    def _refuse(self, error: PilotlightError, cause: Exception | None = None) -> None:
        if not self.request_id:
            self.request_id = new_request_id()
        answer = answer_error(self, error, cause)
        self._parts.edge.access.failed(self, error, answer[0])
        self._send(*answer)

    def end_unexpectedly(self, error: Exception) -> None:
        """Answer that something is wrong in here, unless it has its answer."""
        self._end_call()
        if not self._is_over:
            failed = PilotlightError(code="internal")
            self._parts.entry.recorder.request_failed(failed, self)
            self._refuse(failed, error)

    def _send(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status = status
        lines = header_lines([*headers, (b"content-length", b"%d" % len(body)), *ids_of(self)])
        if self._connection.answer(status, lines, body):
            self._over()
        else:
            self._go_on(lambda exchange: exchange.answer(status, headers, body))

    # -- what comes in between -------------------------------------------------------------------------------------

    def client_gone(self) -> None:
        """Its client hung up."""
        self.status = CLIENT_CLOSED
        self._give_up(None)

    def cancel(self) -> None:
        """The process ends."""
        self._give_up(draining_error())

    def revoke(self, error: PilotlightError) -> None:
        """Its principal may no more, for this reason."""
        self.revoked = error
        self._give_up(error)

    def _give_up(self, error: PilotlightError | None) -> None:
        if self._is_slow:
            self._wrong = error
            return
        if self._is_over:
            return
        self._end_call()
        recorder = self._parts.entry.recorder
        if error is None:
            recorder.client_gone(self)
            self._over()
        else:
            recorder.request_failed(error, self)
            self._refuse(error)

    # -- its end ---------------------------------------------------------------------------------------------------

    def _end_call(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.end()

    def _over(self) -> None:
        """It has its answer, or needs none."""
        self._is_over = True
        entry = self._parts.entry
        self._leave()
        entry.limits.release(self)
        entry.recorder.metrics.requests[ROUTE, self.status] += 1
        if (access := self._parts.edge.access).logs_all and self.status < 400:
            access.ended(self)

    def _leave(self) -> None:
        parts, size = self._parts, self._size
        self._size = 0
        parts.entry.budget.give_back(size, self.principal.tenant)
        parts.entry.gate.leave(self)
        parts.requests.remove(self)

    def _go_on(self, work: Callable[[Exchange], Awaitable[None]]) -> None:
        """Answer in a task, which is an exchange like any other."""
        self._is_slow = True
        self._connection.start_task(self._answer_slowly(work))

    async def _answer_slowly(self, work: Callable[[Exchange], Awaitable[None]]) -> None:
        self._is_over = True
        exchange = Exchange({}, self._connection.slow_send(), self.arrived_at)
        exchange.route, exchange.version = ROUTE, self.version
        exchange.principal, exchange.admission, exchange.usage = self.principal, self.admission, self.usage
        exchange.call_id, exchange.request_id, exchange.home = self.call_id, self.request_id, self.home
        exchange.called, exchange.call = self.called, self.call
        await self._parts.edge.serve(exchange, self._carry_on(exchange, work))

    async def _carry_on(self, exchange: Exchange, work: Callable[[Exchange], Awaitable[None]]) -> None:
        entry, call = self._parts.entry, self.call
        with entry.gate.succeed(self, exchange.task):
            self._parts.requests.remove(self)
            try:
                if self._wrong is not None:
                    raise self._wrong
                await work(exchange)
            except PilotlightError as error:
                if call is None or error is self._wrong:
                    raise
                told = redact_for_caller(error, call)
                entry.recorder.call_failed(told, call)
                raise told from None
            finally:
                self._leave()
