"""What each guard has seen of both sides, as numbers: counts, the estimated effect, and how sure that is. Pure.

The intervals are for people who look once, and say how far an estimate may be off. Nothing is decided by them: bets
decide, which hold however often one looks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pilotlight_core.model.api.rollouts.rollout_api import GuardView
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.evidence import Evidence
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from pilotlight_gateway.judging.guards.amount_guard import AmountGuard
from pilotlight_gateway.judging.guards.pair_guard import FIRST, PairGuard
from pilotlight_gateway.judging.verdicts import UNDER

SURE = 1.96
"""Standard errors on each side, of 19 looks in 20."""
LEAST = 2
"""Observations without which nothing is known of how they vary."""


class GuardEffect(NamedTuple):
    """By which part the new version is above the old one."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def guard_facts(evidence: Evidence) -> tuple[GuardView, ...]:
    """Of all functions, the loudest first."""
    found = [
        _fact(name, function, guard, e) for name, function in evidence.functions.items()
        for guard, e in function.guards().items()
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda one: (one.weight == 0.0, -one.evidence, one.function, one.guard)))


def _fact(name: str, function: FunctionEvidence, guard: str, e: float) -> GuardView:
    canary, other, of_canary, of_other = _counts(function, guard)
    if of_canary is not None and of_other is not None:
        effect = event_effect(canary, of_canary, other, of_other)
    elif guard == "pairs":
        effect = pair_effect(function.pairs)
    else:
        effect = amount_effect(function.amounts[guard])
    return GuardView(
        function=name, guard=guard, about=UNDER.get(guard, guard), weight=function.weights[guard], evidence=e,
        canary=canary, canary_of=of_canary, other=other, other_of=of_other,
        effect=effect.estimate, low=effect.low, high=effect.high, proven=function.verified().get(guard),
    )  # fmt: skip


def _counts(function: FunctionEvidence, guard: str) -> tuple[int, int, int | None, int | None]:
    """What was counted of the new version and of the old one, and of how many: None, of no guard on events."""
    if guard == "pairs":
        return function.pairs.pairs, function.pairs.pairs, None, None
    if (amount := function.amounts.get(guard)) is not None:
        return amount.canary, amount.other, None, None
    new = function.calls.get(Arm.CANARY, 0)
    old = sum(function.calls.values()) - new
    if guard == "crash":
        return function.crash.failures, function.crash.other, new, function.crash.other_calls
    event = function.events[guard]
    if guard == "answers":
        new = old = function.pairs.pairs
    elif guard in ("slow", "dear"):  # of calls whose times and costs are compared
        measured = function.amounts["latency" if guard == "slow" else "cost"]
        new, old = measured.canary, measured.other
    return event.canary, event.other, max(new, event.canary), max(old, event.other)


def event_effect(canary: int, of_canary: int, other: int, of_other: int) -> GuardEffect:
    """Of events: the ratio of both rates, less one; its interval also where one side had none."""
    if not of_canary or not of_other or not canary + other:
        return GuardEffect()
    estimate = (canary / of_canary) / (other / of_other) - 1.0 if other else None
    # Half an event is added to each side: without that, one that had none would say nothing of how sure it is.
    centre = math.log((canary + 0.5) / (of_canary + 0.5)) - math.log((other + 0.5) / (of_other + 0.5))
    spread = 1 / (canary + 0.5) - 1 / (of_canary + 0.5) + 1 / (other + 0.5) - 1 / (of_other + 0.5)
    return _around(estimate, centre, spread)


def amount_effect(amount: AmountGuard) -> GuardEffect:
    """Of amounts: the ratio of what is usual on both sides, less one."""
    if amount.canary_squares is None or amount.other_squares is None or min(amount.canary, amount.other) < LEAST:
        return GuardEffect(amount.effect)
    spread = _error(amount.canary, amount.canary_sum, amount.canary_squares)
    spread += _error(amount.other, amount.other_sum, amount.other_squares)
    return _around(amount.effect, amount.canary_sum / amount.canary - amount.other_sum / amount.other, spread)


def pair_effect(pairs: PairGuard) -> GuardEffect:
    """Of pairs: by which part the new version costs more."""
    judged = pairs.pairs - FIRST
    if pairs.squares is None or judged < LEAST:
        return GuardEffect(pairs.effect)
    return _around(pairs.effect, pairs.total / judged, _error(judged, pairs.total, pairs.squares))


def _error(count: int, total: float, squares: float) -> float:
    """The variance of a mean."""
    return max(0.0, squares - total * total / count) / (count - 1) / count


def _around(estimate: float | None, centre: float, variance: float) -> GuardEffect:
    reach = SURE * math.sqrt(max(0.0, variance))
    return GuardEffect(estimate, math.expm1(centre - reach), math.expm1(centre + reach))
