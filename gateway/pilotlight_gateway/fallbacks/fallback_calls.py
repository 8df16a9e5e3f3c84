"""Calls of functions with a fallback: refused for want of room, they go there, once; their callers wait on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.errors import PilotlightError
from pilotlight_gateway.calls.call_port import (
    BegunCall,
    CallEvent,
    CallPort,
    CallResult,
    CallWaiter,
    ChunkEvent,
    ChunkTaker,
    RelayedCalls,
    StageEvent,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall

InsteadOf = Callable[[PreparedCall, PilotlightError], PreparedCall | None]
"""The call that takes the place of one that failed so; None: none does."""


def by_fallback(result: CallResult, call: PreparedCall) -> CallResult:
    """The result of a call that took another one's place."""
    return msgspec.structs.replace(result, fallback=call.version.ref)


def note_fallback(error: PilotlightError, call: PreparedCall, instead: PreparedCall) -> None:
    """Say in an error that it is of the call that took another one's place."""
    error.more |= {"version": instead.version.ref, "fallback_for": call.version.ref}


async def run_or_fall_back(calls: CallPort, call: PreparedCall, instead_of: InsteadOf) -> CallResult:
    """Run a call, or the one that takes its place; raises the error of the one that ran last."""
    refused: PilotlightError | None = None
    try:
        return await calls.run(call)
    except PilotlightError as error:
        refused = error
    instead = instead_of(call, refused)
    try:
        if instead is None:
            raise refused
    finally:
        del refused  # it knows this frame: a cycle would wait for the garbage collector
    try:
        return by_fallback(await calls.run(instead), instead)
    except PilotlightError as error:
        note_fallback(error, call, instead)
        raise


class FallbackWaiter:
    """Waits for a call, and for the one that takes its place, for a waiter that hears of one alone."""

    def __init__(self, calls: CallPort, call: PreparedCall, waiter: CallWaiter, instead_of: InsteadOf) -> None:
        self._calls = calls
        self._call = call
        self._waiter: CallWaiter | None = waiter
        """None: nobody waits any more."""
        self._instead_of = instead_of
        self._instead: PreparedCall | None = None
        self._begun: BegunCall | None = None
        self._failed: PilotlightError | None = None
        """Told before it had begun."""

    def start(self) -> None:
        """Begin the call."""
        self._begun = self._calls.begin(self._call, self)
        failed, self._failed = self._failed, None
        if failed is not None:
            self.failed(failed)

    def finished(self, result: CallResult) -> None:
        if (waiter := self._leave()) is not None:
            waiter.finished(result if self._instead is None else by_fallback(result, self._instead))

    def failed(self, error: PilotlightError) -> None:
        if self._instead is not None:
            note_fallback(error, self._call, self._instead)
            self._report_failure(error)
        elif self._begun is None:
            self._failed = error
        elif (instead := self._instead_of(self._call, error)) is None:
            self._report_failure(error)
        else:
            self._instead, begun, self._begun = instead, self._begun, None
            begun.end()  # before the other one, which has the same id
            self._go_on(instead)

    def _go_on(self, instead: PreparedCall) -> None:
        try:
            begun = self._calls.begin(instead, self)
        except PilotlightError as error:
            self._report_failure(error)
            return
        if self._waiter is None:  # it was told within that, and has ended this
            begun.end()
        else:
            self._begun = begun

    def end(self) -> None:
        """See `BegunCall`."""
        self._leave()
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.end()

    def _report_failure(self, error: PilotlightError) -> None:
        if (waiter := self._leave()) is not None:
            waiter.failed(error)

    def _leave(self) -> CallWaiter | None:
        waiter, self._waiter = self._waiter, None
        return waiter


class FallbackStream:
    """The events of a call, or of the one that takes its place: it has had none but stages then."""

    def __init__(
        self,
        calls: CallPort,
        call: PreparedCall,
        instead_of: InsteadOf,
        clock: Callable[[], float],
        taker: ChunkTaker | None = None,
    ) -> None:
        self._calls = calls
        self._call = call
        self._instead_of = instead_of
        self._clock = clock
        self._instead: PreparedCall | None = None
        self._taker = taker
        self._events: Any = calls.stream(call, taker)
        self._is_open = True
        """Whether it may still fall back."""

    def __aiter__(self) -> FallbackStream:
        return self

    async def __anext__(self) -> list[CallEvent]:
        """The next events. Raises the call's error."""
        refused: PilotlightError | None = None
        bunch: list[CallEvent] = []
        try:
            bunch = await self._events.__anext__()
        except PilotlightError as error:
            refused = error
        try:
            if refused is not None:
                return self._fall_back(refused)
        finally:
            del refused  # as in `run_or_fall_back`
        if self._is_open and any(isinstance(event, ChunkEvent) for event in bunch):
            self._is_open = False
        last = bunch[-1]
        if self._instead is not None and isinstance(last, CallResult):
            bunch[-1] = by_fallback(last, self._instead)
        return bunch

    def _fall_back(self, refused: PilotlightError) -> list[CallEvent]:
        instead = self._instead_of(self._call, refused) if self._is_open else None
        self._is_open = False
        if instead is None:
            if self._instead is not None:
                note_fallback(refused, self._call, self._instead)
            raise refused
        self._instead = instead
        self._events = self._calls.stream(instead, self._taker)
        detail = {"version": instead.version.ref, "reason": refused.wire_code}
        return [StageEvent(name="fallback", ms=(self._clock() - self._call.arrived_at) * 1000.0, detail=detail)]

    async def aclose(self) -> None:
        """End the call: cancel it if it runs."""
        await self._events.aclose()


class FallbackCalls(RelayedCalls):
    """A `CallPort` over another one, whose calls may fall back. `clock`: monotonic seconds."""

    def __init__(self, calls: CallPort, instead_of: InsteadOf, clock: Callable[[], float]) -> None:
        super().__init__(calls)
        self._instead_of = instead_of
        self._clock = clock

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        if call.version.spec.fallback is UNSET:
            return self._calls.begin(call, waiter)
        either = FallbackWaiter(self._calls, call, waiter, self._instead_of)
        either.start()
        return either

    async def run(self, call: PreparedCall) -> CallResult:
        if call.version.spec.fallback is UNSET:
            return await self._calls.run(call)
        return await run_or_fall_back(self._calls, call, self._instead_of)

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> Any:
        if call.version.spec.fallback is UNSET:
            return self._calls.stream(call, taker)
        return FallbackStream(self._calls, call, self._instead_of, self._clock, taker)
