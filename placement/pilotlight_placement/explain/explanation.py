"""A decision in sentences: the choice and its rule, what was excluded, and why not elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice

from pilotlight_core.model.placing import Over
from pilotlight_core.model.suggestions import as_sentence
from pilotlight_core.model.versions.pushed_weights import RESIDENT
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import COST_STEP, SLOW, UNMEASURED
from pilotlight_placement.asks.resident_ask import LOAD_STEP, ResidentAsk, fetch_steps
from pilotlight_placement.explain.speeds import on_slice, point_text
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.history import Op, chain
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from pilotlight_placement.search.candidate import slice_of
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit, Placement, Rival, Value
from pilotlight_placement.search.filters import FILTERS, RULED_OUT, refusal_at
from pilotlight_placement.search.policy import STEPS, best_on, first_difference

SHOWN_DIGITS = 12
"""Of the digest of weights."""
MARGIN = 1000
"""More steps of 5 % than any two costs differ by."""
NODES_NAMED = 8
"""Existing nodes that are named if the requested one does not exist."""


def explain(outcome: Placement | NoFit, container: str = "the container") -> list[str]:
    """The decision in sentences, the result first."""
    if isinstance(outcome, NoFit):
        return [as_sentence(f"{container} has no place: {outcome.reason}"), *reasons(outcome)]
    return [f"{container} runs on {outcome.slice}.", *reasons(outcome)]


def reasons(outcome: Placement | NoFit) -> list[str]:
    record = outcome.record
    if isinstance(outcome, NoFit):
        return [] if outcome.by_limit else [ruled_out(record)]
    lines = [*_speed(outcome), ruled_out(record)]
    if not record.rivals:
        others = _left(record) > len(outcome.slice.ids)
        return [*lines, "Nothing else that would do is better." if others else "It was the only place that would do."]
    return lines + [_lost(outcome, rival) for rival in record.rivals]


def _speed(outcome: Placement) -> list[str]:
    ask = outcome.record.ask
    point = on_slice(ask.curves, outcome.slice, ask.slo_ms)
    within = f" within {ask.slo_ms:g} ms" if ask.slo_ms is not None else ""
    return [f"There it does, as far as is known{within}, {point_text(point)}."] if point is not None else []


def ruled_out(record: DecisionRecord) -> str:
    parts = [f"{count} {RULED_OUT[name]}" for name, count in record.refused]
    of = f"{record.considered} devices and slots" if record.considered != 1 else "1 device or slot"
    start = f"Of {of} {_left(record)} would do"
    return f"{start}: {', '.join(parts)}." if parts else f"{start}."


def _left(record: DecisionRecord) -> int:
    return record.considered - sum(count for _, count in record.refused)


def fleet_at(fleet: Fleet, record: DecisionRecord) -> Fleet | None:
    """The fleet of a past decision, rebuilt from the journal; None if that does not reach so far."""
    ops = fleet.journal.since(record.revision, fleet.standing)
    if ops is None:
        return None
    held, nodes = dict(fleet.held), {name: place.node for name, place in fleet.places.items()}
    for op in (*chain(fleet.trail), *ops):
        _apply(op, held, nodes, back=True)
    for op in reversed(list(chain(record.trail))):
        _apply(op, held, nodes, back=False)
    then = Fleet((nodes[name] for name in sorted(nodes)), prices=fleet.prices)
    then.retune(record.mix)
    for each in sorted(held.values(), key=lambda each: each.container):
        then.hold(each)
    return then


def _apply(op: Op, held: dict[str, PlacedContainer], nodes: dict[str, Node], *, back: bool) -> None:
    if op.held is not None:
        if op.taken is back:
            held.pop(op.held.container, None)
        else:
            held[op.held.container] = op.held
        return
    old, new = (op.after, op.before) if back else (op.before, op.after)
    if old is not None:
        nodes.pop(old.name, None)
    if new is not None:
        nodes[new.name] = new


def why_not(fleet: Fleet, outcome: Placement | NoFit, node: str) -> list[str]:
    """Why a decision did not choose a node, on the fleet as it was then."""
    record = outcome.record
    if isinstance(outcome, NoFit) and outcome.by_limit:
        return [as_sentence(f"It may start nowhere: {outcome.reason}")]
    winner = outcome.slice if isinstance(outcome, Placement) else None
    then = fleet_at(fleet, record)
    if then is None:
        return [f"The fleet's state at revision {record.revision} is gone; it is at revision {fleet.standing} now."]
    if node not in then.places:
        there = [*islice(sorted(then.places), NODES_NAMED), *["…"][: len(then.places) > NODES_NAMED]]
        return [f"There was no node {node} at revision {record.revision}; there were: {', '.join(there) or 'none'}."]
    if winner is not None and winner.node == node:
        return [f"{node} was chosen: {winner.what}."]
    place = then.places[node]
    refusals = [refusal_at(then, unit, record.ask) for unit in place.units]
    if all(refusals):
        reasons = Counter(refusal[1] for refusal in refusals if refusal)
        return [_refused(node, why, count, len(refusals)) for why, count in reasons.items()] or [f"{node} has nothing."]
    found = best_on(then, record.ask, place)
    if found is None or record.value is None or winner is None:
        return [f"{node} has a place, and nothing rules it out."]
    return [_compared(record.ask, winner, record.value, slice_of(then, found[1]), found[0])]


def _refused(node: str, why: str, count: int, every: int) -> str:
    which = f"{node}" if count == every else f"{count} of {every} devices and slots of {node}"
    return f"{which}: {why}."


def _lost(outcome: Placement, rival: Rival) -> str:
    value = outcome.record.value
    assert value is not None  # noqa: S101 - what was placed has a value
    return _compared(outcome.record.ask, outcome.slice, value, rival.slice, rival.value)


def _compared(ask: Ask, winner: Slice, mine: Value, loser: Slice, theirs: Value) -> str:
    """Why one place won over another, by the step that decided."""
    step = first_difference(mine, theirs)
    return f"Not {_distinct_text(loser, winner)}: {REASONS[step](ask, winner, mine, loser, theirs)} (rule: {step})."


def _distinct_text(loser: Slice, winner: Slice) -> str:
    """A slice in words, with its device's name if the winner's words are the same."""
    return f"{loser} ({'+'.join(loser.ids)})" if str(loser) == str(winner) else str(loser)


def rules() -> list[str]:
    return [f"{item.name}: {item.sentence}" for item in (*FILTERS, *STEPS)]


StepReason = Callable[[Ask, Slice, Value, Slice, Value], str]


def _preference(ask: Ask, _: Slice, mine: Value, __: Slice, theirs: Value) -> str:
    first, later = ask.choices[mine.preference], ask.choices[theirs.preference]
    return f"{later} stands after {first} in the function's list"


def _spread(ask: Ask, winner: Slice, mine: Value, _: Slice, theirs: Value) -> str:
    what = "node" if ask.spread and ask.spread.over is Over.NODE else "zone"
    return f"its {what} has {theirs.spread} of the function's containers, that of {winner.node} has {mine.spread}"


def _resident(ask: Ask, winner: Slice, mine: Value, loser: Slice, theirs: Value) -> str:
    if len(ask.resident) > 1:
        more = _bytes_text((theirs.resident - mine.resident) * LOAD_STEP)
        every = " and ".join(map(_resident_text, ask.resident))
        return f"of {every} {loser.node} has {more} less at hand than {winner.node}"
    (only,) = ask.resident
    if theirs.resident < fetch_steps(only):
        return f"{loser.node} has {_resident_text(only)} on its disk, {winner.node} has them in memory"
    verb = "build" if only.is_built else "fetch"
    return f"{loser.node} would have to {verb} {_resident_text(only)}, {winner.node} has them"


def _resident_text(ask: ResidentAsk) -> str:
    tenant, is_pushed, digest = ask.id.partition(f":{RESIDENT}")
    return f"the {'packages' if ask.is_built else 'weights'} {tenant}{is_pushed}{digest[:SHOWN_DIGITS]}"


def _bytes_text(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count >> 20} MiB"


def _cost(_: Ask, winner: Slice, mine: Value, __: Slice, theirs: Value) -> str:
    if theirs.cost >= SLOW - MARGIN > mine.cost:
        return "as far as is known it is too slow there for the service level"
    if theirs.cost >= UNMEASURED - MARGIN > mine.cost:
        return f"the function was never measured there, on {winner.what} it was"
    return f"it costs about {100 * (COST_STEP ** (theirs.cost - mine.cost) - 1):.0f} % more for what it does"


def _parked(_: Ask, __: Slice, ___: Value, loser: Slice, ____: Value) -> str:
    return f"something that is parked on {loser.node} would have to end for it"


def _blank(ask: Ask, winner: Slice, _: Value, __: Slice, ___: Value) -> str:
    return f"no blank of the base environment {ask.base} is ready there, on {winner.node} there is one"


def _fragmentation(_: Ask, winner: Slice, mine: Value, loser: Slice, theirs: Value) -> str:
    more = theirs.fragmentation - mine.fragmentation
    chosen = winner.what if winner.what != loser.what else "the one that was chosen"
    return f"it would take more than {chosen} from what is typically asked for (by {more:.2g})"


def _fit(_: Ask, winner: Slice, mine: Value, loser: Slice, theirs: Value) -> str:
    if winner.slot:
        return f"more is free on {loser.node}, and what is begun is filled first"
    if winner.units:
        return f"it would begin an empty device, {winner.what} on {winner.node} is of one in use"
    if not winner.profile:
        left, least = theirs.fit * 64, mine.fit * 64
        return f"it would leave {left:.0f} whole devices free on its node, {winner.node} has {least:.0f} left"
    return f"it would leave {theirs.fit:.0%} of its device free, {winner.what} leaves {mine.fit:.0%}"


def _start(_: Ask, winner: Slice, __: Value, ___: Slice, ____: Value) -> str:
    return f"{winner.what} starts higher and keeps the lower slices for large profiles"


def _cut(_: Ask, winner: Slice, __: Value, ___: Slice, ____: Value) -> str:
    return f"its instance would have to be made first, on {winner.node} there is an idle one"


def _order(_: Ask, winner: Slice, __: Value, loser: Slice, ___: Value) -> str:
    if winner.node == loser.node:
        return f"the two are equal by every other rule, and the other one comes first on {winner.node}"
    return f"the two are equal by every other rule, and {winner.node} comes first in the fixed order"


REASONS: dict[str, StepReason] = {
    "preference": _preference,
    "spread": _spread,
    "resident": _resident,
    "cost": _cost,
    "parked": _parked,
    "fragmentation": _fragmentation,
    "fit": _fit,
    "start": _start,
    "cut": _cut,
    "blank": _blank,
    "order": _order,
}
