"""The calls that the calls of this node make: the agent asks the gateway that sent the parent, and answers the guest.

A guest says only which of its own calls asks, and for what; from which container, for whom and until when is known
here and at the gateway. What is asked is asked again until there is an answer; the gateway carries it out once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

import msgspec
import structlog

from pilotlight_core.bus import BusDown, BusError, BusTimeout, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import CLASSES, CallFailed, PilotlightError
from pilotlight_core.model.messages.agent_questions import (
    INLINE_REQUEST,
    MOST_AT_ONCE,
    AskNested,
    LeaveNested,
    NestedAnswer,
)
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.calls.answer_room import AnswerRoom
from pilotlight_runtime.calls.call_log import ids_of_call
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest

REPEAT_S = 5.0
"""For an answer, before it is asked for again."""
PAUSE_S = 0.25
"""Before the next question while the bus or the gateway is away."""
GONE_S = 5.0
"""A gateway that has not listened for so long is gone."""
GRACE_S = 2.0
"""Beyond the parent's deadline, for the gateway's own error."""
REFUSAL_S = 0.5
"""A nested call that did not reach a function is answered so much later, so that a guest which makes nothing else asks
no faster than the calls that it may have open allow."""
HELD_BYTES = 64 * 2**20
"""Of the requests of one container's nested calls; more are refused."""
MOST_OF_CONTAINER = 1_024
"""Nested calls of all calls of one container at a time; more are refused."""

T = TypeVar("T")
AnswerGuest = Callable[[guest.NestedResult], None]
log = structlog.get_logger(__name__)


class AskingBus(Protocol):
    """What is needed of the bus."""

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        """The reply; raises BusError."""
        ...

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        """Raises BusError when the message was not sent."""


class _Silence(Enum):
    """Why there is no answer."""

    LATE = auto()  # it may have been asked
    NOBODY = auto()  # the gateway does not listen
    AWAY = auto()  # the bus


class _Nested:
    __slots__ = ("frame", "held_room", "is_over", "is_uploading", "parent", "reply", "room", "task")

    def __init__(self, parent: AcceptedCall, frame: guest.NestedCall, reply: AnswerGuest, room: AnswerRoom) -> None:
        self.parent = parent
        self.frame = frame
        self.reply = reply
        self.room = room
        self.held_room = 0
        """Bytes of its answer that have room in its container."""
        self.task: asyncio.Task[None] | None = None
        self.is_uploading = False
        """Whether a transfer holds the request, which goes on when nobody waits for the answer any more."""
        self.is_over = False


class NestedAsks:
    """Asks in tasks of `group`. `clock`: monotonic seconds."""

    def __init__(
        self,
        bus: AskingBus,
        bodies: BodyTransfers,
        group: asyncio.TaskGroup,
        *,
        region: str,
        node: str,
        clock: Callable[[], float],
    ) -> None:
        self._bus = bus
        self._bodies = bodies
        self._group = group
        self._region = region
        self._node = node
        self._clock = clock
        self._open: dict[AcceptedCall, dict[int, _Nested]] = {}
        """By parent and number; no parent without any."""
        self._held = Counter[str]()
        """Bytes of requests, by container."""
        self._counts = Counter[str]()
        """Nested calls, by container."""
        self.refused_here = 0
        """Nested calls that were answered at once, and asked of nobody."""

    def __len__(self) -> int:
        return sum(map(len, self._open.values()))

    def begin(self, parent: AcceptedCall, frame: guest.NestedCall, reply: AnswerGuest, room: AnswerRoom) -> str:
        """Ask for a nested call of a call that runs; `reply` gets its one answer, once its container has `room`.

        Returns the rule that the guest breaks; "": none.
        """
        siblings = self._open.get(parent, {})
        if len(siblings) >= MOST_AT_ONCE:
            return f"one of its calls waits for more than {MOST_AT_ONCE} others"
        if frame.number in siblings:
            return "it gave two nested calls one number"
        container, size = parent.run.container, len(frame.request)
        if self._held[container] + size > HELD_BYTES:
            self.refused_here += 1
            reply(problem_result(frame.number, "overloaded", f"Requests of {HELD_BYTES} bytes are under way already."))
            return ""
        if self._counts[container] >= MOST_OF_CONTAINER:
            self.refused_here += 1
            why = f"fan-out: the calls of one container may wait for {MOST_OF_CONTAINER} others at a time."
            reply(problem_result(frame.number, "nested_refused", why))
            return ""
        self._counts[container] += 1
        self._held[container] += size
        one = self._open.setdefault(parent, {})[frame.number] = _Nested(parent, frame, reply, room)
        one.task = self._group.create_task(self._carry_out(one))
        one.task.add_done_callback(lambda _: self._close(one))
        return ""

    def leave(self, parent: AcceptedCall, number: int) -> None:
        """The guest wants that answer no more."""
        if (one := self._open.get(parent, {}).get(number)) is not None and one.task is not None:
            one.task.cancel()

    def end(self, parent: AcceptedCall) -> None:
        """End the nested calls of a call that has ended, or is not wanted any more."""
        if (open_ := self._open.get(parent)) is not None:  # nearly every call that ends has none
            for one in list(open_.values()):
                if one.task is not None:
                    one.task.cancel()

    def parent_of(self, container: str, number: int) -> AcceptedCall | None:
        """The call of a container that waits for the nested call of this number."""
        return next((p for p, some in self._open.items() if p.run.container == container and number in some), None)

    async def _carry_out(self, one: _Nested) -> None:
        try:
            result = await self._answered(one)
            self._close(one, result)
        finally:
            one.room.give_back(one.held_room)

    async def _answered(self, one: _Nested) -> guest.NestedResult:
        """The answer, which has room."""
        try:
            await one.room.take(0)  # who does not read what it has asked for asks for nothing more
            result = await self._answer(one)
            if is_refusal(result):
                await asyncio.sleep(REFUSAL_S)
            if not one.held_room:
                await one.room.take(len(result.body))
                one.held_room = len(result.body)
        except Exception:
            log.exception("a nested call could not be asked for", **ids_of_call(one.parent.run))
            result = problem_result(one.frame.number, "internal", "The agent could not ask for it.")
        return result

    def _close(self, one: _Nested, result: guest.NestedResult | None = None) -> None:
        """Answer the guest, once; without a result the nested call was left."""
        siblings = self._open.get(one.parent, {})
        if siblings.get(one.frame.number) is not one:
            return
        del siblings[one.frame.number]
        if not siblings:
            self._open.pop(one.parent, None)
        container = one.parent.run.container
        self._counts[container] -= 1
        if not self._counts[container]:
            del self._counts[container]
        one.is_over = True
        self._give_back(one)
        if result is None:
            self._leave(one)
            result = problem_result(one.frame.number, "cancelled", "The call was left.")
        one.reply(result)

    def _give_back(self, one: _Nested) -> None:
        """Give the bytes of a request back, once it is over and no transfer holds them."""
        if one.is_uploading or not one.is_over:
            return
        container = one.parent.run.container
        self._held[container] -= len(one.frame.request)
        if not self._held[container]:
            del self._held[container]

    async def _answer(self, one: _Nested) -> guest.NestedResult:
        number, run, frame = one.frame.number, one.parent.run, one.frame
        size = len(frame.request)
        asked = whole = AskNested(
            parent=run.call_id, grant_number=run.grant_number, container=run.container, number=number,
            function=frame.function, of_app=frame.of_app, request=frame.request if size <= INLINE_REQUEST else b"",
            request_size=size if size > INLINE_REQUEST else 0,
        )  # fmt: skip
        nobody_since_at: float | None = None
        while (left_s := one.parent.deadline_at + GRACE_S - self._clock()) > 0:
            answer = await self._request(run.gateway, asked, min(REPEAT_S, left_s))
            if answer is _Silence.LATE:
                asked, nobody_since_at = msgspec.structs.replace(whole, request=b"", again=True), None
                continue
            if answer is _Silence.NOBODY:
                at = self._clock()
                nobody_since_at = at if nobody_since_at is None else nobody_since_at
                if at - nobody_since_at > GONE_S:
                    return problem_result(number, "call_lost", "The gateway that sent its caller is gone.")
            if isinstance(answer, _Silence):
                await asyncio.sleep(PAUSE_S)
                continue
            nobody_since_at = None
            if not isinstance(answer, NestedAnswer):
                return problem_result(number, "internal", "The gateway's answer cannot be read.")
            then = await self._go_on(one, whole, answer)
            if isinstance(then, guest.NestedResult):
                return then
            asked = then
        return problem_result(number, "deadline_exceeded", "The deadline of its caller has passed.")

    async def _go_on(self, one: _Nested, whole: AskNested, answer: NestedAnswer) -> guest.NestedResult | AskNested:
        """The result that an answer is, or what to ask next. `whole`: what was asked first."""
        number = one.frame.number
        if answer.is_unknown:
            return whole
        if answer.place is not None:
            if not await self._upload(answer.place, one):
                return problem_result(number, "overloaded", "Its gateway did not take the request.")
            return whole
        if answer.large is None:
            return guest.NestedResult(number=number, body=answer.body, problem=answer.problem)
        if not await one.room.take_within(answer.large.size, REPEAT_S):
            # Its gateway keeps it for as long as it is asked for.
            return msgspec.structs.replace(whole, request=b"", again=True)
        one.held_room = answer.large.size
        return await self._fetched(one, answer.large)

    async def _request(self, gateway: str, asked: AskNested, within_s: float) -> object:
        """The gateway's answer, or why there is none."""
        try:
            return await self._bus.request(subjects.nested(self._region, gateway, self._node), asked, within_s)
        except BusTimeout:
            return _Silence.LATE
        except NoResponders:
            return _Silence.NOBODY
        except BusDown:
            return _Silence.AWAY

    async def _upload(self, place: BodyRef, one: _Nested) -> bool:
        done = _Outcome[bool]()

        def finish(taken: bool) -> None:
            one.is_uploading = False
            self._give_back(one)
            done.set(taken)

        one.is_uploading = True
        self._bodies.upload(place, one.frame.request, finish)
        return await done.future

    async def _fetched(self, one: _Nested, ref: BodyRef) -> guest.NestedResult:
        done = _Outcome[bytes | None]()
        self._bodies.fetch(ref, done.set)
        data = await done.future
        self._leave(one)  # it lies at the gateway no longer than needed
        if data is None:
            return problem_result(one.frame.number, "call_lost", "Its answer could not be fetched from its gateway.")
        return guest.NestedResult(number=one.frame.number, body=data)

    def _leave(self, one: _Nested) -> None:
        run = one.parent.run
        message = LeaveNested(parent=run.call_id, grant_number=run.grant_number, number=one.frame.number)
        with contextlib.suppress(BusError):  # its gateway looks for what nobody waits for
            self._bus.publish_nowait(subjects.nested(self._region, run.gateway, self._node), message)


class _Outcome(Generic[T]):
    """What a transfer calls back with, for a task that may be gone by then."""

    def __init__(self) -> None:
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def set(self, value: T) -> None:
        if not self.future.done():
            self.future.set_result(value)


def is_refusal(result: guest.NestedResult) -> bool:
    """Whether a nested call failed before it came to a function."""
    if not result.problem:
        return False
    said = msgspec.json.decode(result.problem)
    return not issubclass(CLASSES.get(said.get("code", ""), PilotlightError), CallFailed)


def problem_result(number: int, code: str, detail: str) -> guest.NestedResult:
    """The result of a nested call that failed here."""
    return guest.NestedResult(number=number, problem=msgspec.json.encode({"code": code, "detail": detail}))
