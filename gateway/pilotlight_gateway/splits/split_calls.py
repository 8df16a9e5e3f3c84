"""Calls of a rollout that another version is to run: split anew meanwhile, or failed on the new version.

A home refuses a call whose side was chosen by an older record than its own; the record is read from the bus then, and
the call is chosen for anew: at its own age, under its own id. A call that the new version has not started, or has
failed where it may be repeated, is run by the old one: its caller sees no error, the judge does, and at once. That was
one of the runs that `retries=` allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.bus import BusError
from pilotlight_core.model.errors import Conflict, PilotlightError, Unavailable
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.rollouts.split_units import asker_of
from pilotlight_core.model.spec import FunctionSpec, VersionRecord
from pilotlight_gateway.calls.call_port import (
    BegunCall,
    CallEvent,
    CallPort,
    CallResult,
    CallWaiter,
    ChunkEvent,
    ChunkTaker,
    RelayedCalls,
)
from pilotlight_gateway.calls.call_sink import FailedStartTaker, report_failed_start
from pilotlight_gateway.calls.effects import ignore_failed_start
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.fallbacks.fallback_finder import BILLED, method_for
from pilotlight_gateway.judging.failures import OF_VERSION
from pilotlight_gateway.splits.splits import Splits
from pilotlight_gateway.tenancy.hook_versions import hook_versions
from pilotlight_gateway.tenancy.registry_port import RegistryPort

STALE = "stale_split"
NOT_STARTED = frozenset({"no_capacity", "queue_full", "breaker_open", "load_failed"})
"""Codes of calls that the new version has not begun."""
FAILED = OF_VERSION - NOT_STARTED
"""Codes of calls that it has begun, and that may be its fault."""
TRIES = 3
"""Times that a call is chosen for anew: records that change faster than it is sent are somebody's mistake."""
READ_S = 2.0


def may_move(call: PreparedCall, error: PilotlightError) -> bool:
    """Whether another version may run a call that came to this: nothing of it has run, or it may be run twice."""
    if call.split < 0:
        return False
    if error.wire_code == STALE:
        return True
    if call.side is None or call.side.arm is not Arm.CANARY:
        return False
    if error.wire_code in NOT_STARTED:
        return BILLED not in error.more
    return may_repeat(call.version.spec, error.wire_code)


def may_repeat(spec: FunctionSpec, code: str) -> bool:
    """Whether a call that the new version has begun and failed may be run by the old one too."""
    return code in FAILED and (spec.idempotent or (code == "function_raised" and spec.retries > 0))


class Left(NamedTuple):
    """What a call came to at the version that it has left."""

    code: str = ""
    course: CallResult | None = None
    """How far it came; None: it was given no container."""


def left_of(error: PilotlightError) -> Left:
    """The same of an error."""
    return Left(error.wire_code, error.course if isinstance(error.course, CallResult) else None)


def by_other(result: CallResult, call: PreparedCall, left: Left) -> CallResult:
    """The result of a call that another version has run."""
    return msgspec.structs.replace(
        result, fallback=result.fallback or call.version.ref, moved=left.code, moved_from=left.course
    )


class SplitCalls(RelayedCalls):
    """A `CallPort` over another one, whose calls of rollouts may move. `begin` leaves that to its waiter."""

    def __init__(self, calls: CallPort, registry: RegistryPort, splits: Splits) -> None:
        super().__init__(calls)
        self._registry = registry
        self._splits = splits
        self.on_failed_start: FailedStartTaker = ignore_failed_start
        """Told of calls that the new version has failed, before the old one runs them; who compares sets it."""

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        return self._calls.begin(call, waiter)

    async def run(self, call: PreparedCall) -> CallResult:
        failed: PilotlightError | None = None
        try:
            return await self._calls.run(call)
        except PilotlightError as error:
            failed = error
        try:
            return await self.run_again(call, failed)
        finally:
            del failed  # it knows this frame: a cycle would wait for the garbage collector

    async def run_again(self, call: PreparedCall, error: PilotlightError) -> CallResult:
        """Run a call that came to `error` by another version.

        Raises:
            PilotlightError: `error`, if it may not, or what the last one came to.
        """
        moving, failed, stays = call, error, False
        for _ in range(TRIES):
            stays = stays or failed.wire_code != STALE
            again = await self._again(moving, failed, stays=stays)
            left = left_of(failed)
            try:
                return by_other(await self._calls.run(again), again, left)
            except PilotlightError as another:
                moving, failed = again, another
        raise failed

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> Any:
        if call.split < 0:
            return self._calls.stream(call, taker)
        return _Events(self._stream(call, taker))

    async def _stream(self, call: PreparedCall, taker: ChunkTaker | None) -> AsyncIterator[list[CallEvent]]:
        """The events of a call, or of those that take its place: it has had no chunk then."""
        moving, left, stays = call, Left(), False
        for last in (*[False] * TRIES, True):
            has_begun = False
            failed: PilotlightError | None = None
            events: Any = self._calls.stream(moving, taker)
            try:
                async with aclosing(events):
                    async for bunch in events:
                        has_begun = has_begun or any(isinstance(one, ChunkEvent) for one in bunch)
                        if left.code and isinstance(bunch[-1], CallResult):
                            bunch[-1] = by_other(bunch[-1], moving, left)
                        yield bunch
                return
            except PilotlightError as error:
                failed = error
            if has_begun and failed.wire_code == STALE:
                raise Conflict(
                    f"{moving.version.ref} was rolled back before this stream ended, and no other version goes on "
                    "with it: what came so far is what it made.",
                    code="version_withdrawn",
                ) from failed
            if last or has_begun:
                raise failed
            left = left_of(failed)
            stays = stays or failed.wire_code != STALE
            moving = await self._again(moving, failed, stays=stays)

    async def _again(self, call: PreparedCall, error: PilotlightError, *, stays: bool) -> PreparedCall:
        """The call in the place of one that came to `error`; raises that if there is none.

        `stays`: the new version has failed it, so it is the old one's, however traffic is split by now.
        """
        if not may_move(call, error):
            raise error
        version = call.version
        if error.wire_code in OF_VERSION:
            report_failed_start(self.on_failed_start, call, *left_of(error))
        try:
            async with asyncio.timeout(READ_S):
                record = await self._registry.rollout(version.tenant, version.app)
                control = await self._control(call, is_stale=error.wire_code == STALE)
        except (TimeoutError, BusError):
            raise error from None
        if record is None or control is None:
            raise error
        if not stays:
            asker = asker_of(call.tenant, call.key, call.call_id, call.head)
            beside = call.side if call.parent else None  # it stays where the call that makes it is
            chosen = self._splits.choose(record, control, asker, beside)
            return await self._instead(call, chosen.version, error, chosen.side, chosen.split)
        return await self._instead(call, control, error, None, record.revision)

    async def _control(self, call: PreparedCall, *, is_stale: bool) -> VersionRecord | None:
        """What is deployed of a call's function.

        Where `is_stale` the app is read from the bus too: a rollback by hand moves both records, and this gateway may
        have slept through either.
        """
        registry, version = self._registry, call.version
        app = registry.app_nowait(version.tenant, version.app)
        if is_stale:
            app = await registry.app(version.tenant, version.app)
        deployed = app.functions.get(version.function) if app is not None and not app.stopped else None
        if deployed is None:
            return None
        return registry.version(deployed) or await registry.fetch_version(deployed)

    async def _instead(
        self, call: PreparedCall, version: VersionRecord, error: PilotlightError, side: Side | None, split: int
    ) -> PreparedCall:
        is_same = version.id == call.version.id
        method = call.method if is_same else method_for(call, version)
        version = call.version if is_same else version  # with the runs that it has left
        if method is None and error.wire_code in FAILED:  # then it is the one that is to run it again
            version, method = call.version, call.method
        if error.wire_code == "function_raised":
            version = once_less(version)
        if method is None:
            raise Unavailable(
                "Its version was rolled back, and the old one takes other arguments: try again.",
                code="starting", retry_after=0.1,
            ) from error  # fmt: skip
        hooks = await hook_versions(self._registry, version)
        return call.instead(version, method, call.scheduling, hooks, side, split, last_number_of(call, error))


def once_less(version: VersionRecord) -> VersionRecord:
    """The version as a call sees it of whose runs one has failed."""
    spec = version.spec
    return msgspec.structs.replace(version, spec=msgspec.structs.replace(spec, retries=max(0, spec.retries - 1)))


def last_number_of(call: PreparedCall, error: PilotlightError) -> int:
    """The highest grant number that a call has used which came to `error`."""
    course = error.course
    grant = course.grant if isinstance(course, CallResult) else None
    return call.last_number if grant is None else max(call.last_number, grant.grant_number)


class _Events:
    """Events of a generator, as those of a call."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> list[CallEvent]:
        found: list[CallEvent] = await self._events.__anext__()
        return found

    async def aclose(self) -> None:
        await self._events.aclose()
