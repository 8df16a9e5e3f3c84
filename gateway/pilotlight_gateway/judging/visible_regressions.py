"""The smallest regressions that a planned rollout would see, before it starts: whoever plans too little is told.

For a bet whose wealth is to reach `100 * guards`, the expected number of calls is the logarithm of that, and a bit,
over what one call adds. Of amounts: `2 (ln(100 G) + 1.5) / (rho (1 - rho)) (sd / delta)^2` calls of both sides, with
`delta` the logarithm of the ratio; of events: `(ln(100 G) + 1.5) / (p KL(theta, rho))`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from pilotlight_core.model.rollouts.rollout_record import WHOLE, RolloutTerms
from pilotlight_gateway.judging.guards.guard_set import weights_of

BIT = 1.5
LATENCY_SD, COST_SD, KNOWN_COST_SD, PAIR_SD = 0.5, 0.6, 0.19, 0.1
"""Usual standard deviations of logarithms, where nothing is measured."""
UNJUDGED_PAIRS = 20
LARGEST = 10.0
"""A ratio above which nothing is said."""


class ComparisonPlan(NamedTuple):
    """What a rollout will have compared when its ramp is over."""

    calls: float
    """Of both sides."""
    rho: float
    pairs: int
    guards: float


def planned(terms: RolloutTerms, *, calls_per_hour: float, shadows: bool, streams: bool = False) -> ComparisonPlan:
    """What the terms come to, at so many calls an hour. With a twin both sides have as many calls."""
    calls = canary = 0.0
    for step in terms.steps:
        share = min(step, WHOLE - terms.hold_back) / WHOLE
        seconds = terms.every_s if step < WHOLE else terms.bake_s
        hourly = calls_per_hour * share
        wanted = max(1.0, min(float(terms.calls), hourly))
        hours = max(seconds / 3_600.0, wanted / hourly if hourly and step < WHOLE else 0.0)
        canary += hourly * hours
        calls += calls_per_hour * hours * ((share + min(share, 1.0 - share)) if terms.twin else 1.0)
    weights = weights_of(terms, streams=streams, pairs=shadows and terms.pairs > 0)
    rho = min(max(canary / calls, 0.01), 0.99) if calls else 0.5
    return ComparisonPlan(calls, rho, terms.pairs if shadows else 0, sum(weights.values()))


def smallest_amount(calls: float, rho: float, sd: float, guards: float) -> float:
    """The ratio of an amount that so many calls show."""
    if calls <= 0.0:
        return math.inf
    delta = sd * math.sqrt(2.0 * (math.log(100.0 * guards) + BIT) / (rho * (1.0 - rho)) / calls)
    return math.exp(delta) if delta < math.log(LARGEST) else math.inf


def smallest_pair_ratio(pairs: float, noise: float, guards: float) -> float:
    """The ratio of costs that so many pairs show."""
    judged = pairs - UNJUDGED_PAIRS
    if judged <= 0.0:
        return math.inf
    return math.exp(noise * math.sqrt(2.0 * (math.log(100.0 * guards) + BIT) / 1.25 / judged))


def calls_for_events(rate: float, ratio: float, rho: float, guards: float) -> float:
    """Calls of both sides until it shows that events are `ratio` times as frequent."""
    theta = rho * ratio / (1.0 - rho + rho * ratio)
    divergence = theta * math.log(theta / rho) + (1.0 - theta) * math.log((1.0 - theta) / (1.0 - rho))
    return (math.log(100.0 * guards) + BIT) / (rate * (1.0 - rho + rho * ratio) * divergence)


def smallest_event_ratio(calls: float, rate: float, rho: float, guards: float) -> float:
    """The ratio of rates that so many calls show."""
    low, high = 1.001, 1.0 / rate
    if calls < calls_for_events(rate, high, rho, guards):
        return math.inf
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if calls_for_events(rate, middle, rho, guards) <= calls else (middle, high)
    return high


def visible_sentences(
    terms: RolloutTerms,
    *,
    calls_per_hour: float,
    shadows: bool,
    error_rate: float = 0.001,
    sds: Mapping[str, float] | None = None,
    streams: bool = False,
) -> tuple[str, ...]:
    """What a rollout on these terms will see, and what not, for whoever starts it.

    `sds`: standard deviations of the logarithms of `latency` and `cost` (given its size), as far as they are known.
    """
    plan, known = planned(terms, calls_per_hour=calls_per_hour, shadows=shadows, streams=streams), sds or {}
    tolerance = 1.0 + (0.05 if terms.tolerance is None else terms.tolerance)
    latency = smallest_amount(plan.calls, plan.rho, known.get("latency", LATENCY_SD), plan.guards) * tolerance
    cost = smallest_amount(plan.calls, plan.rho, known.get("cost", KNOWN_COST_SD), plan.guards) * tolerance
    rate = max(error_rate, 1e-5)
    errors = smallest_event_ratio(plan.calls, rate, plan.rho, plan.guards)
    found = [
        f"At {calls_per_hour:,.0f} calls an hour {plan.calls:,.0f} calls of both sides are compared until the end."
    ]
    found.append(f"It shows if the new version is slower by {_by(latency)}.")
    found.append(
        f"It shows if failures rise from {rate:.2%} to {rate * errors:.2%} of calls."
        if errors < math.inf
        else f"It shows if nearly every call fails, but no rise of failures from {rate:.2%} that is less."
    )
    found.append(f"It shows in live calls if the new version costs {_by(cost)} more.")
    if plan.pairs:
        pairs = smallest_pair_ratio(plan.pairs, PAIR_SD, plan.guards) * 1.01
        found.append(f"Pairs of shadows ({plan.pairs}) show if it costs {_by(pairs)} more, where they stray by 10 %.")
    else:
        found.append("There are no pairs of shadows, which would show a few percent of cost.")
    return tuple(found)


def _by(ratio: float) -> str:
    return f"{ratio - 1.0:.0%}" if ratio < LARGEST else f"more than {LARGEST:.0f} times"
