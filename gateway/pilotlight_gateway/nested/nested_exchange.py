"""Hears what agents ask for the calls that run there, answers it, and ends what nobody waits for any more.

An agent repeats what it asks until an answer comes; what has been carried out is answered again, never carried out
again. So an answer is kept for a while after it was sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
import structlog

from pilotlight_core.bus import Bus, BusError, bus_users
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Cancelled, NotFound, PilotlightError, Unavailable
from pilotlight_core.model.messages.agent_questions import AskNested, LeaveNested, NestedAnswer
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_function
from pilotlight_gateway.http.protocol.http_exchange import new_request_id
from pilotlight_gateway.http.protocol.problem_answers import problem_of
from pilotlight_gateway.nested.nested_book import NestedBook, NestedKey, OpenNested, key_of
from pilotlight_gateway.nested.nested_calls import NestedCalls
from pilotlight_gateway.nested.nested_rules import bound_fault, claim_fault, is_running
from pilotlight_gateway.nested.nested_waits import NestedWaits

SWEEP_S = 0.25
"""Between two looks for nested calls whose parents have ended."""
KEEP_S = 20.0
"""An agent asks again within a few seconds; a server of the bus that stands still loses no answer for so long."""
KEEP_BYTES = 32 * 2**20
"""Of all kept answers; beyond, the oldest of the tenant with the most bytes is kept only as a note that it was sent."""
MOST_KEPT = 131_072
"""Kept answers and notes; while there are as many, no nested call begins."""
ANSWER_BYTES = 512
"""Of an answer besides its body."""
NOT_KEPT = "The call has run, but its answer was kept no longer when it was asked for again."
OVER = "The call that made it has ended."

log = structlog.get_logger(__name__)


class LiveCalls(Protocol):
    """The calls whose origin this gateway is."""

    def find(self, call_id: str) -> InFlightCall | None: ...


class KeptAnswer(msgspec.Struct):
    """An answer that was sent, and may be asked for again."""

    node: str
    tenant: str
    answer: NestedAnswer
    size: int
    held: int
    """Bytes of its body that the byte budget counts, because it lies at the internal listener."""
    sent_at: float


class NestedExchange:
    """Carries out nested calls while `running` is open. `clock`: monotonic seconds."""

    def __init__(
        self,
        bus: Bus,
        live: LiveCalls,
        calls: NestedCalls,
        bodies: LargeBodies,
        reports: Callable[[float], Iterable[NodeReport]],
        *,
        region: str,
        gateway: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`reports`: the nodes' last ones at an instant."""
        self._bus = bus
        self._live = live
        self._calls = calls
        self._bodies = bodies
        self._reports = reports
        self._waits = NestedWaits()
        self._region = region
        self._gateway = gateway
        self._clock = clock
        self._book: NestedBook = calls.book
        self._kept: OrderedDict[NestedKey, KeptAnswer] = OrderedDict()
        self._kept_bytes = Counter[str]()
        """By tenant."""
        self._whole: dict[str, OrderedDict[NestedKey, None]] = {}
        """By tenant: which of them are more than a note, the oldest first."""
        self._group: asyncio.TaskGroup | None = None
        self._has_work = asyncio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            sweeping = group.create_task(self._sweep_on())
            heard = await self._bus.subscribe(subjects.nested(self._region, self._gateway), self.receive)
            try:
                yield
            finally:
                await heard.unsubscribe()
                sweeping.cancel()
                for one in self._book:
                    self._end(one)

    # -- what agents ask -----------------------------------------------------------------------------------------

    def receive(self, subject: str, message: Any, reply: str) -> None:
        """An agent asks, or leaves."""
        node = subjects.node_of(subject)
        if isinstance(message, LeaveNested):
            self._leave(node, message)
        # A gateway may publish where a node may not: it answers into that node's inbox alone.
        elif isinstance(message, AskNested) and reply.startswith(f"{bus_users.agent_inbox(node)}."):
            self._take(node, message, reply)

    def _take(self, node: str, asked: AskNested, reply: str) -> None:
        key = key_of(asked)
        live = self._live.find(asked.parent)
        if (kept := self._kept.get(key)) is not None:
            if kept.node == node:
                self._keep_on(key, kept, asked, live)
                self._send(reply, kept.answer)
            return
        if (fault := claim_fault(live, node, asked)) is not None or live is None:
            self._send(reply, problem_answer(fault))
            return
        one = self._book.get(key)
        if one is not None:
            one.reply = reply  # its node is that of the grant, which is a part of the key
            if one.task is None and asked.request_size:
                self._take_left(one, asked, live.call)
            return
        if asked.again:
            self._send(reply, NestedAnswer(is_unknown=True))
            return
        self._enter(key, node, asked, live.call, reply)

    def _enter(self, key: NestedKey, node: str, asked: AskNested, parent: PreparedCall, reply: str) -> None:
        above, book = self._book.lineage_of(asked.parent), self._book
        lineage = above.below(parent.function)
        at_once = sum(not each.is_left for each in book.of_parent(asked.parent))
        tree = book.tree(above.root)
        fault = bound_fault(lineage, at_once, tree, asked)
        if fault is None and len(self._kept) >= MOST_KEPT:
            fault = Unavailable("Too many nested calls have ended in a short time.", code="overloaded")
        if fault is not None:
            told = redact_for_function(self._calls.counted(fault, parent), parent.version.tenant, parent.tenant)
            self._send(reply, problem_answer(told))
            return
        one = book.enter(key, node, lineage, reply)
        self._has_work.set()
        if asked.request_size:
            one.place = self._bodies.expect(parent.tenant)
            self._send(reply, NestedAnswer(place=one.place))
        else:
            self._begin(one, asked, parent)

    def _take_left(self, one: OpenNested, asked: AskNested, parent: PreparedCall) -> None:
        """Take the request from its place; if it is not there, the agent may not have heard of the place."""
        data = self._bodies.answer(one.place)
        if data is None:
            self._send(one.reply, NestedAnswer(place=one.place))
            return
        self._withdraw_place(one)
        self._begin(one, msgspec.structs.replace(asked, request=data, request_size=0), parent)

    def _begin(self, one: OpenNested, asked: AskNested, parent: PreparedCall) -> None:
        if self._group is not None:
            one.task = self._group.create_task(self._carry_out(one, asked, parent))
            one.task.add_done_callback(lambda _: self._close(one))

    async def _carry_out(self, one: OpenNested, asked: AskNested, parent: PreparedCall) -> None:
        request_id, tenant = new_request_id(), parent.tenant
        try:
            body = await self._calls.run(one, asked, parent, request_id)
            self._finish(one, tenant, self._answer_of(body, tenant))
        except PilotlightError as error:
            self._finish(one, tenant, problem_answer(error, request_id))
        except asyncio.CancelledError:
            self._finish(one, tenant, problem_answer(one.refusal or Cancelled(OVER), request_id))
        except Exception:
            log.exception("a nested call went wrong", parent=one.parent)
            self._finish(one, tenant, problem_answer(PilotlightError(), request_id))

    def _answer_of(self, body: bytes, tenant: str) -> NestedAnswer:
        """Raises Unavailable if there is no room for it."""
        if len(body) <= INLINE_BYTES:
            return NestedAnswer(body=body)
        self._calls.budget.take(len(body), tenant)
        return NestedAnswer(large=self._bodies.offer(body))

    def _leave(self, node: str, message: LeaveNested) -> None:
        key = (message.parent, message.grant_number, message.number)
        if (one := self._book.get(key)) is not None and one.node == node:
            one.is_left = True
            self._end(one)
        elif (kept := self._kept.get(key)) is not None and kept.node == node:
            self._drop(key)

    # -- how they end --------------------------------------------------------------------------------------------

    def _end(self, one: OpenNested, refusal: PilotlightError | None = None) -> None:
        """End a nested call that has not ended; its node is told why."""
        one.refusal = refusal
        if one.task is not None:
            one.task.cancel()
        else:
            self._finish(one, "", problem_answer(refusal or Cancelled(OVER)))

    def _finish(self, one: OpenNested, tenant: str, answer: NestedAnswer) -> None:
        self._withdraw_place(one)
        self._book.close(one)
        held = answer.large.size if answer.large is not None else 0
        size = ANSWER_BYTES + len(answer.body) + len(answer.problem)
        self._kept[one.key] = KeptAnswer(one.node, tenant, answer, size, held, self._clock())
        self._kept_bytes[tenant] += size
        self._whole.setdefault(tenant, OrderedDict())[one.key] = None
        while self._kept_bytes.total() > KEEP_BYTES:
            self._shrink_one()
        self._send(one.reply, answer)

    def _close(self, one: OpenNested) -> None:
        """Its task is over; one that was cancelled before its first step has told nobody."""
        if self._book.get(one.key) is one:
            self._finish(one, "", problem_answer(one.refusal or Cancelled(OVER)))

    def _keep_on(self, key: NestedKey, kept: KeptAnswer, asked: AskNested, live: InFlightCall | None) -> None:
        """Keep what is asked for again while its caller runs, whose container may have no room for it as yet."""
        if not is_running(live, kept.node, asked.grant_number):
            return
        kept.sent_at = self._clock()
        self._kept.move_to_end(key)
        if (whole := self._whole.get(kept.tenant)) is not None and key in whole:
            whole.move_to_end(key)

    def _withdraw_place(self, one: OpenNested) -> None:
        place, one.place = one.place, None
        self._bodies.withdraw(place)

    def _drop(self, key: NestedKey) -> None:
        self._release(key, self._kept.pop(key))

    def _shrink_one(self) -> None:
        """Keep of an answer no more than that it was sent: without a note its call would be carried out again."""
        tenant = max(self._kept_bytes, key=self._kept_bytes.__getitem__)
        key = next(iter(self._whole[tenant]))
        kept = self._kept[key]
        self._release(key, kept)
        note = problem_answer(NotFound(NOT_KEPT, code="answer_not_kept"))
        self._kept[key] = KeptAnswer(kept.node, tenant, note, 0, 0, kept.sent_at)

    def _release(self, key: NestedKey, kept: KeptAnswer) -> None:
        if (whole := self._whole.get(kept.tenant)) is not None:
            whole.pop(key, None)
            self._kept_bytes[kept.tenant] -= kept.size
            if not whole:
                del self._whole[kept.tenant], self._kept_bytes[kept.tenant]
        self._bodies.withdraw(kept.answer.large)
        self._calls.budget.give_back(kept.held, kept.tenant)

    async def _sweep_on(self) -> None:
        while True:
            await self._has_work.wait()
            await asyncio.sleep(SWEEP_S)
            self.sweep(self._clock())
            if self._book.is_empty and not self._kept:
                self._has_work.clear()

    def sweep(self, at: float) -> None:
        """End the nested calls whose parents run no more, or that would never be served; forget old answers."""
        for one in self._book:
            if not is_running(self._live.find(one.parent), one.node, one.key[1]):
                self._end(one)
        if (held_up := self._waits.refuse_one(self._book, self._live.find, self._reports, at)) is not None:
            self._end(*held_up)
        while self._kept and at - next(iter(self._kept.values())).sent_at > KEEP_S:
            self._drop(next(iter(self._kept)))
        self._book.forget(lambda root: self._live.find(root) is not None)

    def _send(self, reply: str, answer: NestedAnswer) -> None:
        with contextlib.suppress(BusError):  # it is asked again
            self._bus.publish_nowait(reply, answer)


def problem_answer(error: PilotlightError | None, request_id: str = "") -> NestedAnswer:
    """The answer of a nested call that failed."""
    return NestedAnswer(problem=problem_of(error or PilotlightError(), request_id).encode())
