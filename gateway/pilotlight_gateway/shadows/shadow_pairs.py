"""Pairs: one input to both versions of a rollout, in turn and in random order, after its caller has the answer.

The sink takes calls of the old version that ended well while a rollout gathers pairs, as many as there is room for; one
task runs them. Two shadows of one tenant's versions never run at a time here, so neither disturbs the other; and those
of one tenant wait for no other's, which may run for an hour.
"""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutState
from pilotlight_core.model.rollouts.shadow_rules import why_no_shadows
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.judging.failures import OF_VERSION
from pilotlight_gateway.shadows.answer_differences import differ
from pilotlight_gateway.shadows.shadow_calls import ShadowCalls, Shadowed
from pilotlight_gateway.tenancy.registry_port import RolloutRegistry

MOST_WAITING = 32
"""Calls whose pairs wait; further ones are not repeated. A rollout needs hundreds, and calls come all day."""
MOST_OF_TENANT = 8
"""Of those: a busy app leaves room for others."""
AT_ONCE = 8
"""Tenants whose pairs run at a time."""
LARGEST = 2**20
"""Bytes of an input or answer that is kept for a pair."""
TIMES_OF_WANTED = 2
"""Pairs of a function that run here at most, for each that its rollout asks for: some say nothing, and the rollout may
wait an hour for another function, which is called seldom."""
COUNTED = 1_000
"""Functions of rollouts whose pairs are counted; the oldest are forgotten."""

log = structlog.get_logger(__name__)


class PairedSide(NamedTuple):
    """One of the two."""

    arm: Arm
    shadowed: Shadowed
    differs: bool
    """Whether its answer differs from the one that the caller got."""


class Pair(NamedTuple):
    """Two shadows of one call."""

    rollout: Rollout
    revision: int
    """Of the record that the rollout was read from."""
    primary: PreparedCall
    sides: tuple[PairedSide, PairedSide]


class _Waiting(NamedTuple):
    call: PreparedCall
    output: bytes
    rollout: Rollout
    revision: int
    size: int


@dataclass(kw_only=True)
class ShadowPairs:
    """A `CallSink`; `run` is its task."""

    records: RolloutRegistry
    shadows: ShadowCalls
    budget: ByteBudget
    note: Callable[[Pair], None]
    """Told of each pair of which both sides ran."""
    counts: Counter[str] = field(default_factory=Counter)
    """Pairs that ran, that could not, and calls for which there was no room, or that come after enough of them."""
    _begun: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pairs that were begun, by rollout and function."""
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _stirred: asyncio.Event = field(default_factory=asyncio.Event)
    _busy: set[str] = field(default_factory=set)
    """Tenants of whose versions a pair runs."""

    def call_ended(
        self,
        call: PreparedCall,
        result: CallResult,
        stages: dict[str, float],  # noqa: ARG002 - a sink's
        total_ms: float,  # noqa: ARG002 - a sink's
    ) -> None:
        """Take it for a pair, if its function's rollout gathers some and there is room."""
        if call.side is None:  # nearly all calls: nothing more is asked of them
            return
        version = call.version
        record = self.records.rollout_nowait(version.tenant, version.app)
        if record is None or (rollout := record.rollout) is None or not _is_wanted(call, rollout):
            return
        if self._has_enough(rollout, version.function):
            self.counts["enough"] += 1
            return
        size = len(call.input) + len(result.output)
        of_tenant = sum(one.call.version.tenant == version.tenant for one in self._waiting)
        if len(self._waiting) >= MOST_WAITING or of_tenant >= MOST_OF_TENANT or size > LARGEST:
            self.counts["no_room"] += 1
            return
        try:
            self.budget.take(size, call.tenant)
        except PilotlightError:
            self.counts["no_room"] += 1
            return
        self._waiting.append(_Waiting(call, result.output, rollout, record.revision, size))
        self._stirred.set()

    def call_failed(self, failed: FailedCall) -> None:
        """Of a call that failed nothing is repeated."""

    async def run(self) -> None:
        """Run pairs, those of one tenant's versions one after another, until it is cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._stirred.wait()
                    self._stirred.clear()
                    for _ in range(AT_ONCE - len(self._busy)):
                        if self._next() is not None:
                            group.create_task(self._run_next())
        finally:
            while self._waiting:
                waiting = self._waiting.popleft()
                self.budget.give_back(waiting.size, waiting.call.tenant)

    def _next(self) -> _Waiting | None:
        """The first of a tenant of whose versions none runs."""
        return next((one for one in self._waiting if one.call.version.tenant not in self._busy), None)

    async def _run_next(self) -> None:
        if (waiting := self._next()) is None:
            return
        tenant = waiting.call.version.tenant
        self._waiting.remove(waiting)
        self._busy.add(tenant)
        try:
            if self._still_gathers(waiting):
                await self._run_pair(waiting)
        except PilotlightError as error:
            self.counts["failed"] += 1
            log.warning("a pair of shadows did not run", rollout=waiting.rollout.id, reason=error.detail)
        except Exception:
            self.counts["failed"] += 1
            log.exception("a pair of shadows did not run", rollout=waiting.rollout.id)
        finally:
            self.budget.give_back(waiting.size, waiting.call.tenant)
            self._busy.discard(tenant)
            self._stirred.set()

    def _still_gathers(self, waiting: _Waiting) -> bool:
        version = waiting.call.version
        record = self.records.rollout_nowait(version.tenant, version.app)
        now = record.rollout if record is not None else None
        return now is not None and now.id == waiting.rollout.id and _gathers(now)

    def _has_enough(self, rollout: Rollout, function: str) -> bool:
        """Whether its pairs are as many as may be; what evidence holds goes on until that is for it or against it."""
        most = TIMES_OF_WANTED * rollout.terms.pairs
        return rollout.held != "evidence" and self._begun.get((rollout.id, function), 0) >= most

    def _count(self, rollout: str, function: str) -> None:
        key = rollout, function
        if key not in self._begun and len(self._begun) >= COUNTED:
            del self._begun[next(iter(self._begun))]
        self._begun[key] = self._begun.get(key, 0) + 1

    async def _run_pair(self, waiting: _Waiting) -> None:
        function, rollout = waiting.call.version.function, waiting.rollout
        self._count(rollout.id, function)
        sides = [(Arm.CANARY, rollout.canary[function]), (Arm.TWIN, rollout.twins[function])]
        if is_canary_second(rollout.salt, waiting.call.call_id):
            sides.reverse()
        ran = [(arm, await self.shadows.run(waiting.call, version)) for arm, version in sides]
        if any(_is_void(shadowed) for _, shadowed in ran):
            self.counts["failed"] += 1
            return
        by_arm = dict(ran)
        answer = waiting.output or _output(by_arm[Arm.TWIN])
        first, second = [
            PairedSide(arm, one, await _differs(one, answer, rollout.terms.answer_tolerance)) for arm, one in ran
        ]
        self.counts["ran"] += 1
        self.note(Pair(rollout, waiting.revision, waiting.call, (first, second)))


def _gathers(rollout: Rollout) -> bool:
    """Whether calls are repeated for it: not while a person has paused it, for nobody asks for them then."""
    return rollout.state is RolloutState.PAIRS and not rollout.paused_by


def is_canary_second(salt: bytes, call_id: str) -> bool:
    """Whether the old version goes first: by a coin that nobody outside can foresee."""
    return bool(hmac.digest(salt, b"order:" + call_id.encode(), "sha256")[0] & 1)


def _is_wanted(call: PreparedCall, rollout: Rollout) -> bool:
    """Whether a call takes part in the rollout, on the old version's side: one that named its version does not."""
    function, side = call.version.function, call.side
    return (
        _gathers(rollout)
        and side is not None
        and (side.rollout, side.arm) == (rollout.id, Arm.CONTROL)
        and not call.shadow
        and rollout.control.get(function) == call.version.id
        and function in rollout.canary
        and function in rollout.twins
        and not why_no_shadows(call.version.spec)
    )


def _is_void(shadowed: Shadowed) -> bool:
    """Whether it says nothing of its version: it had no container in time, or was ended with its node."""
    return shadowed.error is not None and shadowed.error.wire_code not in OF_VERSION


def _output(shadowed: Shadowed) -> bytes:
    return shadowed.result.output if shadowed.result is not None else b""


async def _differs(shadowed: Shadowed, answer: bytes, tolerance: float) -> bool:
    output = _output(shadowed)
    return bool(output) and bool(answer) and await differ(output, answer, tolerance)
