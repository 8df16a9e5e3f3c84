"""Turns calls that end on a side of a rollout into what its judge is told of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import msgspec
from cachetools import LRUCache

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, GuardTerms, Rollout, RolloutState
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.shadows.shadow_pairs import Pair, PairedSide
from pilotlight_gateway.splits.split_calls import FAILED, STALE
from pilotlight_gateway.tenancy.registry_port import RolloutRegistry

HISTORY_CALLS = 4_000
"""Of the old version that are told of one rollout before it compares anything."""
READ_BYTES = 64 * 1024
"""Larger inputs and answers are not read for a cost parameter, or for a guard of the function's own."""
BATCH_S = 0.005
"""Calls of one container that end within so long ran in one batch, if their agent is of 0.1, which numbers none."""
TOLD = 10_000
"""Calls of which it is known that a failed start was told."""
ASKED_S = 0.25
"""How long the judge hears nothing of a failure of the new version while the old one is asked the same: an input on
which both fail is nobody's fault. Then it is told as one in doubt, and the answer is told when it comes."""
_decode = msgspec.msgpack.Decoder().decode


class _FailedStart(NamedTuple):
    tenant: str
    app: str
    told: ComparedCall
    """What its call counts for."""


class ComparedSink:
    """A `CallSink`; `note` takes the owner, the app and the call."""

    def __init__(
        self,
        records: RolloutRegistry,
        note: Callable[[str, str, ComparedCall], None],
        wall: Callable[[], float] = time.time,
        later: Callable[[float, Callable[[], None]], object] | None = None,
    ) -> None:
        """`later` calls back after so many seconds; None: the running loop does."""
        self._records = records
        self._note = note
        self._wall = wall
        self._history: LRUCache[str, int] = LRUCache(256)
        """By rollout, the calls that were told as its history."""
        self._failed: LRUCache[str, _FailedStart] = LRUCache(TOLD)
        """By call, its first start that has failed."""
        self._held: dict[str, _FailedStart] = {}
        """Those that are not told yet: what the old version makes of them may be known in a moment."""
        self._later = later

    def start_failed(self, call: PreparedCall, code: str, course: CallResult | None) -> None:
        """A start has failed, and the call is run again: on either side that is what it counts for."""
        side, rollout = call.side, self._rollout_of(call)
        if rollout is None or side is None or call.call_id in self._failed:
            return
        told = self._compared(rollout, side, call, code, course, {}, 0.0)
        failed = _FailedStart(call.version.tenant, call.version.app, told)
        self._failed[call.call_id] = failed
        if side.arm is not Arm.CANARY:
            self._note(*failed)
            return
        self._held[call.call_id] = failed
        later = asyncio.get_running_loop().call_later if self._later is None else self._later
        later(ASKED_S, partial(self._report_doubt, call.call_id))  # not the call, which has its input

    def _report_doubt(self, call_id: str) -> None:
        """The old version takes its time: a failure that is held is told, and what becomes of it later."""
        if (held := self._held.pop(call_id, None)) is not None:
            self._note(held.tenant, held.app, msgspec.structs.replace(held.told, is_asked=True))

    def _report_answer(self, call_id: str, failed: _FailedStart, *, also_failed: bool) -> None:
        """A call of which a start has failed is over: tell that start, or of one in doubt what it came to."""
        was_held = self._held.pop(call_id, None) is not None
        if was_held or failed.told.arm == Arm.CANARY:
            told = msgspec.structs.replace(failed.told, also_failed=also_failed, is_again=not was_held)
            self._note(failed.tenant, failed.app, told)

    def report_held(self) -> None:
        """Tell what is held: nobody will hear what the old version makes of it."""
        for held in self._held.values():
            self._note(*held)
        self._held.clear()

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        side, rollout = call.side, self._rollout_of(call)
        if side is None or rollout is None or result.moved == STALE:
            return
        if (first := self._failed.pop(call.call_id, None)) is not None:
            self._report_answer(call.call_id, first, also_failed=False)
            return
        code = result.moved
        if code:  # what was measured is the old version's, which ran it in the end
            told = self._compared(rollout, side, call, code, result.moved_from, {}, total_ms)
            self._note(call.version.tenant, call.version.app, told)
            return
        told = self._compared(rollout, side, call, code, result, stages, total_ms)
        if result.fallback:
            told = msgspec.structs.replace(told, is_degraded=True)
        if rollout.terms.guards and result.output:
            told = msgspec.structs.replace(told, fields=guarded_fields(rollout.terms.guards, result.output))
        self._note(call.version.tenant, call.version.app, told)

    def call_failed(self, failed: FailedCall) -> None:
        call = failed.call
        if call is None or failed.code in {"", STALE} or (rollout := self._rollout_of(call)) is None:
            return
        if (side := call.side) is None:
            return
        first, course = self._failed.pop(call.call_id, None), failed.course
        if first is not None:
            container = course.container if course is not None else ""
            also_failed = failed.code in FAILED and container != first.told.container
            self._report_answer(call.call_id, first, also_failed=also_failed)
            return
        stages = course.stages if course is not None else {}
        told = self._compared(rollout, side, call, failed.code, course, stages, failed.total_ms)
        self._note(call.version.tenant, call.version.app, told)

    def running_call(self, call: PreparedCall, course: CallResult, execute_ms: float) -> ComparedCall | None:
        """What the judge is told of a call that runs; None: nobody is told of it."""
        side, rollout = call.side, self._rollout_of(call)
        if side is None or rollout is None or call.call_id in self._failed:  # its first start is what counts
            return None
        told = self._compared(rollout, side, call, "", course, {"execute": execute_ms}, 0.0)
        return msgspec.structs.replace(told, is_running=True)

    def pair_ran(self, pair: Pair) -> None:
        """Both shadows of one input have ended."""
        version = pair.primary.version
        for side in pair.sides:
            self._note(version.tenant, version.app, self._paired(pair, side))

    def _rollout_of(self, call: PreparedCall) -> Rollout | None:
        """The rollout whose judge is told of a call; None: nobody is."""
        side = call.side
        if side is None or call.shadow:
            return None
        record = self._records.rollout_nowait(call.version.tenant, call.version.app)
        rollout = record.running if record is not None else None
        if rollout is None or rollout.id != side.rollout:
            return None
        if side.rho > 0.0:
            return rollout
        # Before anything is compared, calls of the old version say what is usual.
        is_before = rollout.state in (RolloutState.STARTING, RolloutState.PAIRS) and side.arm is Arm.CONTROL
        told = self._history.get(rollout.id, 0)
        if not is_before or told >= HISTORY_CALLS:
            return None
        self._history[rollout.id] = told + 1
        return rollout

    def _compared(
        self,
        rollout: Rollout,
        side: Side,
        call: PreparedCall,
        code: str,
        result: CallResult | None,
        stages: dict[str, float],
        total_ms: float,
    ) -> ComparedCall:
        pace, at = call.pace, self._wall()
        container = result.container if result is not None else ""
        spent = result.spent if result is not None else None
        cold = result.cold_start if result is not None else None
        batch_size = spent.batch_size if spent is not None else 1
        return ComparedCall(
            rollout=rollout.id,
            revision=max(0, call.split),
            function=call.version.function,
            method=call.method.name,
            arm=side.arm,
            rho=side.rho,
            call_id=call.call_id,
            tenant=call.tenant,
            unit=side.unit,
            at=at,
            code=code,
            execute_ms=stages.get("execute", 0.0),
            total_ms=max(0.0, total_ms),
            first_ms=pace.first_chunk_ms if pace is not None else 0.0,
            gap_ms=_mean_gap(call),
            gpu_ns=spent.ns * spent.ppm // 1_000_000 if spent is not None else 0,
            cost=cost_parameter(call.method, call.input),
            body_bytes=len(call.input),
            gpu_type=spent.price if spent is not None else "",
            node=result.grant.node if result is not None and result.grant is not None else "",
            container=container,
            nth_call=result.nth if result is not None else 0,
            is_cold=cold is not None,
            start_ms=sum(cold.values()) if cold is not None else 0.0,
            batch=_batch_of(result, batch_size, at) if result is not None else "",
            batch_size=batch_size,
            tokens=_tokens(result) if result is not None else 0,
        )

    def _paired(self, pair: Pair, side: PairedSide) -> ComparedCall:
        shadowed, call = side.shadowed, side.shadowed.call
        result, spent = shadowed.result, shadowed.result.metered if shadowed.result is not None else None
        container = result.container if result is not None else ""
        return ComparedCall(
            rollout=pair.rollout.id, revision=pair.revision, function=pair.primary.version.function,
            method=call.method.name, arm=side.arm, rho=0.5, call_id=call.call_id, tenant=call.tenant, unit="",
            at=self._wall(), code=shadowed.error.wire_code if shadowed.error is not None else "",
            execute_ms=result.stages.get("execute", 0.0) if result is not None else 0.0, total_ms=shadowed.total_ms,
            first_ms=shadowed.first_ms, tokens=_tokens(result) if result is not None else 0,
            gpu_ns=spent.ns * spent.ppm // 1_000_000 if spent is not None else 0,
            cost=cost_parameter(call.method, call.input), body_bytes=len(call.input),
            gpu_type=spent.price if spent is not None else "", container=container,
            nth_call=result.nth if result is not None else 0,
            is_cold=result is not None and result.cold_start is not None, pair=pair.primary.call_id,
            differs=side.differs, code_ns=_code_ns(result, spent) if result is not None and spent is not None else 0,
        )  # fmt: skip


def _tokens(result: CallResult) -> int:
    return sum(result.units.values()) if result.units else 0


def _code_ns(result: CallResult, spent: Spent) -> int:
    """What of a shadow's bill its own code took; 0: it is not known of one that shared its run, or began twice."""
    if spent.batch_size > 1 or spent.starts:
        return 0
    return min(int(result.stages.get("execute", 0.0) * 1e6), spent.ns) * spent.ppm // 1_000_000


def _batch_of(result: CallResult, size: int, at: float) -> str:
    """What the calls of one batch have in common, at whichever gateways they end; "": a call ran alone."""
    if result.nth:
        return f"{result.container}/{result.batch}" if result.batch else ""
    return f"{result.container}/{int(at / BATCH_S)}" if size > 1 else ""


def _mean_gap(call: PreparedCall) -> float:
    """The mean milliseconds between two chunks; 0: there were none."""
    pace = call.pace
    if pace is None or not pace.seen:
        return 0.0
    chunks = sum(count for _, count in pace.gaps)
    return sum(gap * count for gap, count in pace.gaps) / chunks if chunks else 0.0


def cost_parameter(method: MethodSpec, arguments: bytes) -> float:
    """What a function says that a call costs by one of its arguments (`cost_of`); 0: it says nothing, or too much."""
    declared = method.batching.cost_of if method.batching is not None else None
    if declared is None or len(arguments) > READ_BYTES:
        return 0.0
    kind, _, name = declared.partition(":")
    try:
        value = _decode(arguments).get(name)
        found = float(len(value)) if kind == "len" else float(value)
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError):
        return 0.0
    return found if 0.0 < found < 1e15 else 0.0


def guarded_fields(guards: tuple[GuardTerms, ...], output: bytes) -> dict[str, float]:
    """What an answer says for the guards of its function's own; those that it does not say are left out."""
    if len(output) > READ_BYTES:
        return {}
    try:
        answer = _decode(output)
    except (msgspec.DecodeError, ValueError):
        return {}
    found = {}
    for guard in guards:
        value: Any = answer
        for name in guard.field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, (int, float)) and value == value and abs(value) < 1e15:
            found[guard.name] = float(bool(value)) if guard.kind == "event" else float(value)
    return found
