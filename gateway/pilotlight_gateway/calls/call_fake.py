"""Calls in memory, scripted by fields, for tests and benchmarks of the HTTP side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import PilotlightError, UnknownCall
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_gateway.calls.call_port import (
    BegunCall,
    CallEvent,
    CallResult,
    CallStatistics,
    CallWaiter,
    ChunkEvent,
    ChunkTaker,
)
from pilotlight_gateway.calls.prepared_call import PreparedCall

SPENT = Spent(ns=1_000_000, ppm=1_000_000, price="cpu")


class FakeBegunCall:
    """A task that tells a waiter."""

    def __init__(self, result: Coroutine[Any, Any, CallResult], waiter: CallWaiter) -> None:
        self._waiter = waiter
        self._task = asyncio.get_running_loop().create_task(self._report(result))

    async def _report(self, result: Coroutine[Any, Any, CallResult]) -> None:
        try:
            told = await result
        except PilotlightError as error:
            self._waiter.failed(error)
        else:
            self._waiter.finished(told)

    def end(self) -> None:
        """See `BegunCall`."""
        if self._task is not asyncio.current_task():
            self._task.cancel()


@dataclass(kw_only=True)
class FakeCalls:
    """Answers every call with its own input, unless the fields say otherwise."""

    error: Exception | None = None
    """Raised instead of an answer (by a stream: after its events)."""
    output: bytes | None = None
    events: Iterable[CallEvent] = ()
    """What a stream yields before its result, in bunches of one."""
    bunches: Iterable[list[CallEvent]] = ()
    """What it yields behind them."""
    hold: asyncio.Event | None = None
    """Calls wait for it before they answer."""
    home: bytes = b""
    """Where clients reach the home of every function."""
    not_ready: str = ""
    seen: list[PreparedCall] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    """Ids of calls whose task or iterator was cancelled, or that were given to `cancel`."""
    statuses: dict[tuple[str, str], CallStatus] = field(default_factory=dict)
    """(tenant, id) -> what `status` and `cancel` know."""
    listed: list[dict[str, Any]] = field(default_factory=list)
    cold_start: dict[str, float] | None = None
    spent_before: tuple[Spent, ...] = ()
    """What a call that ends well has used on other slices before."""
    fails_after_ms: float | None = 0.0
    """GPU-milliseconds that a failed call has taken; 0: it never started, None: unknown."""
    runs_on: bool = False
    """A cancelled call runs on, until a test closes its usage."""
    taken: list[int] = field(default_factory=list)
    """The numbers of chunks that takers took."""
    number: int = 0

    def new_id(self) -> str:
        self.number += 1
        return f"call_local_1_{self.number:020d}"

    def address_of_home(self, function: str) -> bytes:  # noqa: ARG002 - all have the same one
        return self.home

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        return FakeBegunCall(self.run(call), waiter)

    async def run(self, call: PreparedCall) -> CallResult:
        self.seen.append(call)
        try:
            return await self._result(call)
        except asyncio.CancelledError:
            self._cancelled(call)
            raise

    async def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> AsyncIterator[list[CallEvent]]:
        self.seen.append(call)
        try:
            if call.stream:  # as the real one: other calls have no events
                for event in self.events:
                    if not self._is_taken(event, taker):
                        yield [event]
                for bunch in self.bunches:
                    yield bunch
            yield [await self._result(call)]
        except (asyncio.CancelledError, GeneratorExit):
            self._cancelled(call)
            raise

    def _is_taken(self, event: CallEvent, taker: ChunkTaker | None) -> bool:
        if taker is None or not isinstance(event, ChunkEvent) or not taker.take(event.seq, (event.data,)):
            return False
        self.taken.append(event.seq)
        return True

    def _cancelled(self, call: PreparedCall) -> None:
        self.cancelled.append(call.call_id)
        if self.runs_on and call.usage is not None:
            call.usage.keep_open()

    async def _result(self, call: PreparedCall) -> CallResult:
        if self.hold is not None:
            await self.hold.wait()
        if self.error is not None:
            if call.usage is not None:
                call.usage.close(self.fails_after_ms, started=self.fails_after_ms != 0.0)
            raise self.error
        if call.usage is not None:
            call.usage.close(SPENT.ns / 1e6)
        return CallResult(
            output=call.input if self.output is None else self.output,
            spent=SPENT,
            spent_before=self.spent_before,
            stages={"gateway": call.gateway_ms, "queue": 0.1, "transport": 0.2, "execute": 1.0},
            cold_start=self.cold_start,
            container="ctr_1",
        )

    async def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002
        status = await self.status(tenant, id)
        self.cancelled.append(status.id)
        return status.state in ("queued", "running")

    async def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        found = self.statuses.get((tenant, id))
        if found is None:
            raise UnknownCall(f"There is no call {id}.")
        return found

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        return list(self.each_container(tenant))

    def each_container(self, tenant: str | None) -> Iterator[dict[str, Any]]:
        return (node for node in self.listed if tenant in (None, node["tenant"]))

    def nodes(self) -> list[dict[str, Any]]:
        return [{"node": "fake", "blanks": {}, "slices": [], "containers": len(self.listed)}]

    def ready(self) -> str:
        return self.not_ready

    def statistics(self) -> CallStatistics:
        return CallStatistics(queued=3, oldest_ms=1500.0, running=2, containers={"ready": 1}, nodes=1, blanks=2)
