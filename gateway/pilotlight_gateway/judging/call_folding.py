"""What one compared call changes of the evidence on its function.

The order of the rules: whose call it is, what of it is left out, what is known of it before it ends; then failures,
which count of any call; then times and costs, which count in warm containers alone.
"""

from __future__ import annotations

import math

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.batch_observations import (
    MOST_BATCHES,
    WHOLE_AFTER_S,
    MeasuredAmount,
    PendingBatch,
)
from pilotlight_gateway.judging.failure_folding import fold_failure, resolve_doubt
from pilotlight_gateway.judging.failures import LOST_S, MOST_HANGING, OF_VERSION, is_repeated
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from pilotlight_gateway.judging.guards.amount_guard import scores_of
from pilotlight_gateway.judging.shadow_sides import paired
from pilotlight_gateway.judging.usual.strata import LEAST_CALLS, Reading, is_measured
from pilotlight_gateway.judging.usual.tolerance import START_TOLERANCE, live_tolerance, tolerated
from pilotlight_gateway.judging.usual.usual_levels import MOST_LEVELS, UsualLevel

FIRST_CALLS = 20
"""Of a container, in which caches fill: they say nothing of its version."""
LEAST_STARTS = 8
SIDES: dict[str, bool] = {Arm.CANARY: True, Arm.TWIN: False, Arm.CONTROL: False}
"""By arm, whether it is the canary's."""


def fold_call(evidence: FunctionEvidence, call: ComparedCall) -> None:
    """Note what a call says."""
    canary = SIDES.get(call.arm)
    if evidence.crash.doubted:
        evidence.crash.settle(call.at)
    if canary is None:
        evidence.leave_out("not of a side")
    elif call.pair:
        _fold_pair(evidence, call)
    elif call.rho <= 0.0:
        _fold_history(evidence, call)
    elif call.is_again:
        resolve_doubt(evidence, call)
    elif call.is_running:
        _fold_running(evidence, call, canary=canary)
    else:
        _fold_ended(evidence, call, canary=canary)
        evidence.told.pop(call.call_id, None)


def _fold_ended(evidence: FunctionEvidence, call: ComparedCall, *, canary: bool) -> None:
    """A call ended that was sent to one of both sides by chance."""
    if evidence.speeds is not None:  # what was learnt of devices stays, now that calls are compared
        evidence.tolerance = live_tolerance(evidence.speeds.spread(), devices=1, shared=False)
        evidence.speeds = None
    evidence.calls[call.arm] = evidence.calls.get(call.arm, 0) + 1
    if not call.unit or evidence.units.is_first(call.unit):
        evidence.split.note(canary=canary, rho=call.rho)
    if call.is_degraded:
        evidence.note_event("degraded", call, canary=canary)
        evidence.leave_out("a fallback ran it")
        return
    is_late = call.batch in evidence.parted
    batch = None if is_late else _batch_of(evidence, call, canary=canary)
    fold_failure(evidence, call, batch, canary=canary)
    if is_late:  # such as one that the old version has run again
        evidence.leave_out("the rest of its batch is counted")
        return
    if not is_warm(call):
        evidence.leave_out("the container was cold" if call.is_cold else "first calls of a container")
        _fold_start(evidence, call, canary=canary)
        measured = []
    else:
        measured = _measured(evidence, call, batch, canary=canary)
        if not canary and is_measured(call):
            evidence.strata.learn(call)
    if batch is None:
        _note_measured(evidence, measured, canary=canary, rho=call.rho)
    else:
        batch.add(measured)
        if batch.calls >= batch.size:
            _end_batch(evidence, call.batch)


def is_warm(call: ComparedCall) -> bool:
    """Whether its container had run enough before."""
    return not call.is_cold and not 0 < call.nth_call <= FIRST_CALLS


# -- what is not compared as it is -------------------------------------------------------------------------------------


def _fold_history(evidence: FunctionEvidence, call: ComparedCall) -> None:
    """A call that the old version had for itself: what is usual is learnt of it."""
    if call.arm == Arm.CANARY or call.is_running or call.is_degraded:
        return
    if call.code in OF_VERSION or not call.code:
        evidence.crash.note_other(failed=bool(call.code))
    if not is_warm(call) or not is_measured(call):
        return
    if call.unit and evidence.is_sticky:
        evidence.units.note_history(call.unit, _unit_scores(evidence, call, canary=False))
    if evidence.speeds is not None and call.container and (reading := evidence.strata.measure(call)) is not None:
        evidence.speeds.note(call.container, reading.latency)
    evidence.strata.learn(call)


def _fold_running(evidence: FunctionEvidence, call: ComparedCall, *, canary: bool) -> None:
    """A call has run longer than is usual: that is known before it ends, and counts once for it or for its batch.

    One of a sticky unit is one of the unit's calls from then on.

    Where too many hang to remember them, each counts when it ends.
    """
    if not is_warm(call) or call.batch in evidence.parted:
        return
    by_unit = bool(call.unit) and evidence.is_sticky
    reading, name = evidence.strata.measure(call), call.call_id if by_unit else _observed_as(call)
    if reading is None or not _is_slow(evidence, reading, canary=canary):
        return
    batch = evidence.batches.get(call.batch)
    if batch is not None and "slow" in batch.events:
        return
    if len(evidence.told) >= MOST_HANGING:
        evidence.told = {one: at for one, at in evidence.told.items() if at + LOST_S >= call.at}
    if name not in evidence.told and len(evidence.told) < MOST_HANGING:
        evidence.told[name] = call.at
        if by_unit:
            _note_unit(evidence, call, {"slow": 1.0}, canary=canary, counts=True)
        else:
            evidence.note_event("slow", call, canary=canary)


def _observed_as(call: ComparedCall) -> str:
    """What is one observation: a call's batch, or the call itself."""
    return call.batch or call.call_id


def _fold_pair(evidence: FunctionEvidence, call: ComparedCall) -> None:
    """One of two shadows: it counts when both have run."""
    both = paired(evidence.shadows, call)
    if both is None:
        return
    canary, other = both
    evidence.told_pairs += 1
    if canary.failed != other.failed:
        events = evidence.events.get("errors")
        if events is not None:
            events.note(canary=canary.failed, rho=0.5)
    if not (canary.failed and other.failed):
        evidence.crash.note(failed=canary.failed)
    if not (canary.ended_well and other.ended_well):
        return
    proof, spread = evidence.amount_proofs.get("pairs"), evidence.pairs.spread
    cost, usual = evidence.pair_costs.counted(canary, other)
    if proof is not None and spread > 0.0 and cost > 0.0 and usual > 0.0:
        # A pair is both sides at once: its ratio is the canary's residual over the old version's.
        proof.note(canary=True, rho=0.5, residual=math.log(cost / usual), spread=spread)
    if usual > 0.0:
        slack = tolerated(evidence.pair_tolerance, usual * other.parts / 1e6)
        evidence.pairs.note(cost, usual, slack)
    if canary.differs != other.differs and (answers := evidence.events.get("answers")) is not None:
        answers.note(canary=canary.differs, rho=0.5)


# -- starts ------------------------------------------------------------------------------------------------------------


def _fold_start(evidence: FunctionEvidence, call: ComparedCall, *, canary: bool) -> None:
    """A container's start. A side's first one on a node brings files there that the other side may have already."""
    if call.start_ms <= 0.0 or call.arm == Arm.CONTROL or "start" not in evidence.amounts:
        return
    if call.container and is_repeated(evidence.started, call.container):
        return
    if not is_repeated(evidence.started, f"{call.arm} on {call.node}"):
        return
    level = _level_of(evidence, f"start|{call.gpu_type}")
    if level is None:
        return
    if (residual := level.residual(call.start_ms)) is not None:
        tolerance = level.tolerance(START_TOLERANCE)
        score, clipped_residual = scores_of(residual, level.spread, canary=canary, tolerance=tolerance)
        evidence.amounts["start"].note(canary=canary, rho=call.rho, score=score, residual=clipped_residual)
    if not canary:
        level.learn(call.start_ms, LEAST_STARTS)


# -- times and costs ---------------------------------------------------------------------------------------------------


def _measured(
    evidence: FunctionEvidence, call: ComparedCall, batch: PendingBatch | None, *, canary: bool
) -> list[MeasuredAmount]:
    """What a call in a warm container says of amounts; events, and bets on its sticky unit, are noted."""
    by_unit = bool(call.unit) and evidence.is_sticky
    if by_unit:
        scores = _unit_scores(evidence, call, canary=canary)
        was_told = call.call_id in evidence.told
        if was_told:
            scores.pop("slow", None)
        _note_unit(evidence, call, scores, canary=canary, counts=not was_told)
        return []
    if (reading := evidence.strata.measure(call)) is not None:
        for event in _events_of(evidence, reading, call, canary=canary):
            if event == "slow" and _observed_as(call) in evidence.told:
                continue
            if batch is not None:
                if event in batch.events:
                    continue
                batch.events.append(event)
            evidence.note_event(event, call, canary=canary)
    for name, happened in _custom_events(evidence, call).items():
        if happened:
            evidence.note_event(name, call, canary=canary)
    return _amounts_of(evidence, reading, call, canary=canary)


def _events_of(evidence: FunctionEvidence, reading: Reading, call: ComparedCall, *, canary: bool) -> list[str]:
    """Which of the events `slow` and `dear` a call is."""
    found = ["slow"] if _is_slow(evidence, reading, canary=canary) else []
    usual = reading.usual_cost
    if usual is None or call.code:
        return found
    tolerance = tolerated(evidence.tolerance, reading.usual_cost_ms) if canary else 0.0
    if reading.cost > usual.high + tolerance:
        found.append("dear")
    return found


def _is_slow(evidence: FunctionEvidence, reading: Reading, *, canary: bool) -> bool:
    """Whether it ran longer than the old version's p95; a caller that cancelled then has waited for it too."""
    tolerance = tolerated(evidence.tolerance, reading.usual_ms) if canary else 0.0
    return reading.latency > reading.usual_latency.high + tolerance


def _amounts_of(
    evidence: FunctionEvidence, reading: Reading | None, call: ComparedCall, *, canary: bool
) -> list[MeasuredAmount]:
    """What a call that ended well took of each amount."""
    if call.code:
        return []
    found = []
    if reading is not None:
        evidence.measured += canary
        tolerance, spread = tolerated(evidence.tolerance, reading.usual_ms), reading.usual_latency.spread
        score, clipped = scores_of(reading.latency, spread, canary=canary, tolerance=tolerance)
        found.append(MeasuredAmount("latency", score, clipped, spread))
        if (usual := reading.usual_cost) is not None:
            tolerance = tolerated(evidence.tolerance, reading.usual_cost_ms)
            score, clipped = scores_of(reading.cost, usual.spread, canary=canary, tolerance=tolerance)
            found.append(MeasuredAmount("cost", score, clipped, usual.spread))
    if call.first_ms > 0.0 and "ttft" in evidence.amounts:
        found += _leveled(evidence, "ttft", call, call.first_ms, canary=canary)
        if call.gap_ms > 0.0:
            found += _leveled(evidence, "itl", call, call.gap_ms, canary=canary)
    for name, is_event in evidence.customs.items():
        if not is_event and (value := call.fields.get(name)) is not None:
            found += _leveled(evidence, name, call, value, canary=canary)
    return found


def _custom_events(evidence: FunctionEvidence, call: ComparedCall) -> dict[str, bool]:
    """Of the guards on events in answers, whether a call that has their field was one."""
    if call.code:
        return {}
    return {
        name: call.fields[name] != 0.0
        for name, is_event in evidence.customs.items()
        if is_event and math.isfinite(call.fields.get(name, math.nan))
    }


def _leveled(
    evidence: FunctionEvidence, guard: str, call: ComparedCall, value: float, *, canary: bool
) -> list[MeasuredAmount]:
    """What a call says of an amount that is measured against a level; of the old version, the level learns."""
    level = _level_of(evidence, f"{guard}|{call.method} {call.gpu_type}")
    if level is None or not math.isfinite(value):
        return []
    found, residual = [], level.residual(value)
    if residual is not None:
        tolerance = level.tolerance(evidence.tolerance)
        score, clipped = scores_of(residual, level.spread, canary=canary, tolerance=tolerance)
        found.append(MeasuredAmount(guard, score, clipped, level.spread))
    if not canary:
        level.learn(value, LEAST_CALLS)
    return found


def _level_of(evidence: FunctionEvidence, name: str) -> UsualLevel | None:
    found = evidence.levels.get(name)
    if found is None and len(evidence.levels) < MOST_LEVELS:
        found = evidence.levels[name] = UsualLevel()
    return found


def _unit_scores(evidence: FunctionEvidence, call: ComparedCall, *, canary: bool) -> dict[str, float]:
    """What a call says for its sticky unit, by guard."""
    reading = evidence.strata.measure(call)
    scores = {measured.guard: measured.score for measured in _amounts_of(evidence, reading, call, canary=canary)}
    if not call.code or call.code in OF_VERSION:
        scores["errors"] = float(bool(call.code))
    scores |= {name: float(happened) for name, happened in _custom_events(evidence, call).items()}
    if reading is not None:
        events = _events_of(evidence, reading, call, canary=canary)
        scores["slow"] = float("slow" in events)
        if "cost" in scores:
            scores["dear"] = float("dear" in events)
    return scores


def _note_unit(
    evidence: FunctionEvidence, call: ComparedCall, scores: dict[str, float], *, canary: bool, counts: bool
) -> None:
    """Bet on a call's sticky unit, if that is due; `counts`: whether it is a further call."""
    for bet in evidence.units.note(call.unit, canary=canary, rho=call.rho, scores=scores, counts=counts):
        amount = evidence.amounts.get(bet.guard)
        if amount is not None:
            amount.note(canary=bet.canary, rho=bet.rho, score=bet.score, residual=bet.residual)


def _note_measured(evidence: FunctionEvidence, measured: list[MeasuredAmount], *, canary: bool, rho: float) -> None:
    """Bet on what a call, or a batch, took."""
    for guard, score, residual, spread in measured:
        amount = evidence.amounts.get(guard)
        if amount is None:
            continue
        amount.note(canary=canary, rho=rho, score=score, residual=residual)
        if (proof := evidence.amount_proofs.get(guard)) is not None:
            proof.note(canary=canary, rho=rho, residual=residual, spread=spread)


# -- batches -----------------------------------------------------------------------------------------------------------


def _batch_of(evidence: FunctionEvidence, call: ComparedCall, *, canary: bool) -> PendingBatch | None:
    """The batch that a call ran in; None: it ran alone."""
    if not call.batch or call.batch_size < 2 or (call.unit and evidence.is_sticky):
        return None
    batch = evidence.batches.get(call.batch)
    if batch is None:
        while evidence.batches:
            name, oldest = next(iter(evidence.batches.items()))
            if len(evidence.batches) < MOST_BATCHES and oldest.at + WHOLE_AFTER_S > call.at:
                break
            _end_batch(evidence, name)
            evidence.parted[name] = "errors" in oldest.events
            if len(evidence.parted) > MOST_BATCHES:
                del evidence.parted[next(iter(evidence.parted))]
        batch = evidence.batches[call.batch] = PendingBatch(call.batch_size, canary, call.rho, call.at)
    batch.calls += 1
    return batch


def _end_batch(evidence: FunctionEvidence, name: str) -> None:
    """A batch is whole, or has waited for long enough: it is one observation."""
    batch = evidence.batches.pop(name)
    evidence.told.pop(name, None)
    _note_measured(evidence, batch.means(), canary=batch.canary, rho=batch.rho)
