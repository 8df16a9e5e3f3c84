"""Which guards watch a function, and how much each of them counts: fixed when a rollout starts."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.rollouts.rollout_record import RolloutTerms, Sticky

WEIGHTS = {"crash": 1.0, "errors": 1.0, "slow": 1.0, "latency": 1.0, "cost": 1.0, "dear": 1.0}
"""Of the guards that every function has."""
STARTS = {"start": 0.1, "degraded": 0.1}
"""They are about few calls, and seldom say something that the others do not."""
STREAMS = {"ttft": 0.5, "itl": 0.5}
"""Time to the first chunk, and between chunks."""
PAIRS = {"pairs": 1.0, "answers": 0.0}
"""A new version is often meant to answer differently: that is shown, and counts only if it is asked for."""
PLATFORMS_GUARDS = frozenset({*WEIGHTS, *STARTS, *STREAMS, *PAIRS})

EVENT_GUARDS = ("errors", "slow", "dear", "degraded", "answers")
AMOUNT_GUARDS = ("latency", "cost", "ttft", "itl", "start")


def weights_of(terms: RolloutTerms, *, streams: bool, pairs: bool) -> dict[str, float]:
    """By guard, its part of the mean."""
    found = WEIGHTS | STARTS
    if streams:
        found |= STREAMS
    if pairs:
        found |= PAIRS
    found |= {guard.name: guard.weight for guard in terms.guards}
    return {name: max(0.0, terms.weights.get(name, weight)) for name, weight in found.items()}


def event_guards(terms: RolloutTerms, names: Iterable[str]) -> list[str]:
    """Those that bet on events; of a sticky rollout, those whose events are still counted by call."""
    custom = {guard.name for guard in terms.guards if guard.kind == "event"}
    events = [name for name in names if name in EVENT_GUARDS or name in custom]
    return events if terms.sticky is Sticky.CALL else [name for name in events if name in ("degraded", "answers")]


def amount_guards(terms: RolloutTerms, names: Iterable[str]) -> list[str]:
    """Those that bet on amounts."""
    events = set(event_guards(terms, names))
    return [name for name in names if name not in events and name not in ("crash", "pairs")]
