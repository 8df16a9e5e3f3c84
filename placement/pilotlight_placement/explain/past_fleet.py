"""The fleet of a past decision, rebuilt from the journal if that reaches so far."""

from __future__ import annotations

from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.history import Op, chain
from pilotlight_placement.hardware.node import Node, PlacedContainer
from pilotlight_placement.search.decision_record import DecisionRecord


def fleet_at(fleet: Fleet, record: DecisionRecord) -> Fleet | None:
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
