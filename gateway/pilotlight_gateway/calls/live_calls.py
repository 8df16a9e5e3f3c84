"""Live calls by who waits: a task, such as that of a stream or a job, or a waiter that is told the result at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, CallWaiter, ChunkEvent, ChunkTaker, StageEvent
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.origins import Origins
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.streams.stream_journal import bytes_of

BUNCH_BYTES = 64 * 1024
"""Events are taken together until their chunks have so many bytes."""


class AwaitedCall(InFlightCall):
    """A call that a task waits for. `answer` is done when it has ended."""

    def __init__(
        self, call: PreparedCall, shard: int, origin: Origin, answer: asyncio.Future[CallResult], budget: ByteBudget
    ) -> None:
        super().__init__(call, shard, origin)
        self.answer = answer
        self.budget = budget
        self.taker: ChunkTaker | None = None
        self._events: deque[CallEvent] = deque()
        """Bounded by the window that the origin gives the guest, and by the budget."""
        self._loop = answer.get_loop()
        self._waiting: asyncio.Future[None] | None = None
        """Done at the next news; None: nobody waits."""
        self._held = 0
        self.taken = (0, 0)
        """How many chunks the last `next_events` returned, and their bytes."""

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        if self.call.stream and not self.answer.done():
            name = name if self.pipeline is None else self.pipeline.named(name)
            self._events.append(StageEvent(name=name, ms=ms, detail=dict(detail)))
            self._wake()

    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        if self.call.stream:
            size, events = bytes_of(data), self._events
            self.budget.take(size, self.call.tenant)
            self._held += size
            for piece in data:
                events.append(ChunkEvent(seq=seq, data=piece))
                seq += 1
            self._wake()

    def take_chunks(self, seq: int, data: tuple[bytes, ...]) -> bool:
        taker = self.taker
        return taker is not None and self._waiting is not None and not self._events and taker.take(seq, data)

    def hold_journal(self, size: int) -> None:
        if size > self.journal_bytes:
            self.budget.take(size - self.journal_bytes, self.call.tenant)
        else:
            self.budget.give_back(self.journal_bytes - size, self.call.tenant)
        self.journal_bytes = size

    def hold_value(self, size: int) -> None:
        if size > self.value_bytes:
            self.budget.take(size - self.value_bytes, self.call.tenant)
        else:
            self.budget.give_back(self.value_bytes - size, self.call.tenant)
        self.value_bytes = size

    def finish(self, result: CallResult) -> None:
        if not self.answer.done():
            self.answer.set_result(result)
            self._events.append(result)
            self._wake()

    def fail(self, error: PilotlightError) -> None:
        if self.answer.cancelled():  # with its task; the call's status has the error
            self.error = error.with_traceback(None)
        elif not self.answer.done():
            # Its traceback knows frames that know this call: a cycle, which would wait for the garbage collector.
            self.error = error.with_traceback(None)
            self.answer.set_exception(self.error)
            self.answer.exception()  # somebody may have stopped waiting: that is no warning
            self._wake()

    async def next_events(self) -> list[CallEvent]:
        """Wait for the next events: those that are there, in order, up to BUNCH_BYTES. Raises the call's error."""
        events = self._events
        while not events:
            if self.answer.done():
                self.taken = 0, 0
                return [self.answer.result()]
            waiting = self._waiting = self._loop.create_future()
            await waiting
        bunch: list[CallEvent] = []
        size = chunks = 0
        while events and size < BUNCH_BYTES:
            event = events.popleft()
            if isinstance(event, ChunkEvent):
                size += len(event.data)
                chunks += 1
            bunch.append(event)
        self.taken = chunks, size
        return bunch

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def was_read(self, size: int) -> None:
        """Give the bytes of chunks back."""
        self.budget.give_back(size, self.call.tenant)
        self._held -= size

    def release(self) -> None:
        """Give the bytes of unread chunks back, of the journal, and of what one stage gave to the next."""
        self.budget.give_back(self._held, self.call.tenant)
        self._held = 0
        self.hold_journal(0)
        self.hold_value(0)


class CallStream:
    """The events of a call, in bunches of those that are there: what `CallPort.stream` returns."""

    def __init__(self, live: AwaitedCall, origins: Origins) -> None:
        self._live: AwaitedCall | None = live
        """None: it has ended. An error knows the frames that it came through, which must not know the call then."""
        self._origins = origins
        self._read = (0, 0)
        """How many chunks were returned last, and their bytes: they count as read when the next are asked for."""
        self._has_result = False

    def __aiter__(self) -> CallStream:
        return self

    async def __anext__(self) -> list[CallEvent]:
        """The next events. Raises the call's error."""
        self._note_read()
        if self._live is None or self._has_result:
            self._end()
            raise StopAsyncIteration
        try:
            bunch = await self._live.next_events()
        except BaseException:
            self._end()
            raise
        self._has_result = isinstance(bunch[-1], CallResult)
        self._read = self._live.taken
        return bunch

    async def aclose(self) -> None:
        """End the call: cancel it if it runs."""
        self._end()

    def _end(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            self._origins.end(live)
            live.release()

    def _note_read(self) -> None:
        live, (chunks, size) = self._live, self._read
        if live is not None and chunks:
            self._read = 0, 0
            live.was_read(size)
            self._origins.was_read(live, chunks, size)


class WaitedCall(InFlightCall):
    """A call whose result a waiter is told at once."""

    def __init__(self, call: PreparedCall, shard: int, origin: Origin, origins: Origins, waiter: CallWaiter) -> None:
        super().__init__(call, shard, origin)
        self.origins = origins
        self.waiter: CallWaiter | None = waiter
        """None: nobody waits any more."""

    def report_stage(self, name: str, ms: float, detail: Mapping[str, object]) -> None:
        pass  # only streams have stages

    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        pass

    def finish(self, result: CallResult) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.finished(result)

    def fail(self, error: PilotlightError) -> None:
        self.error = error.with_traceback(None)
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.failed(error)

    def end(self) -> None:
        """See `BegunCall`."""
        self.waiter = None
        self.origins.end(self)
