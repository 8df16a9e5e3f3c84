"""How many containers of an ask one machine of a pool holds: worked out once, by planning on that machine alone."""

from __future__ import annotations

from dataclasses import replace

from pilotlight_autoscaler.policy.nodes.pool_view import PoolView, hypothetical_node
from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.plan.draft import PlanLimits
from pilotlight_placement.plan.plan import DesiredState, plan
from pilotlight_placement.search.decision_record import Placement

PLAIN = PlanLimits(moves=0, blocked=0, empties=0)
MOST_HELD = 16
"""Up to which it is counted."""
NEW = "launch-"
"""Before the number of a node that is not there."""
KNOWN_AT_MOST = 8_192

_known: dict[tuple[Ask, str, str, str, str, bool], int] = {}


def capacity_for(ask: Ask, view: PoolView, type_: MachineType, zone: str) -> int:
    """How many containers of an ask an empty machine of this type holds in a zone, up to `MOST_HELD`."""
    if ask.spread is None and not ask.avoid:  # whose it is makes no difference: many functions ask for the same
        ask = replace(ask, function="", tenant="", resident=())
    minds_zone = bool(ask.zones) or (ask.spread is not None and ask.spread.over is Over.ZONE)
    key = (ask, view.name, view.digest, type_.name, zone if minds_zone else "", type_.name in view.seen)
    if (known := _known.get(key)) is None:
        if len(_known) >= KNOWN_AT_MOST:
            _known.clear()
        node = hypothetical_node(view, type_, zone, NEW)
        node = replace(node, slots=node.slots[:MOST_HELD])  # more of them make no difference, and take their time
        made = plan(Fleet([node]), DesiredState(wants=(), starts=((ask, MOST_HELD),)), 0.0, PLAIN, keep=True)
        known = _known[key] = sum(isinstance(outcome, Placement) for _, outcome in made.outcomes)
    return known
