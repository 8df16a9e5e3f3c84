"""The least that a spot pool is to have: in which zones it is launched, and how many stand in for it on demand. Pure.

A pool with a fallback has, for each of its least nodes that is not ready, one of the fallback's; these go once the
pool's own are there (`policy.spot.spot_fleet` decides, and what it decides is what `benchmarks.spot` plays).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.policy.spot.spot_fleet import PoolInstance, SpotPlan, plan_spot_fleet
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState

RELIEVED = "spot nodes are there in its place"


@dataclass(frozen=True, kw_only=True)
class SpotSigns:
    """What is known of spot nodes beside their launches, by their names."""

    leaving: frozenset[str] = frozenset()
    """Their provider takes them away, or they are not heard of."""
    at_risk: frozenset[str] = frozenset()
    """Their provider recommends to replace them."""
    avoided: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By pool: zones in which none is to be launched now."""
    spares: Mapping[str, int] = field(default_factory=dict)
    """By pool: how many are to stand by."""


def stand_ins_of(pool: str, fallback: PoolView | None) -> list[LaunchRecord]:
    """The nodes of a fallback that stand in for a pool's, the oldest first."""
    launches = fallback.launches if fallback is not None else ()
    return sorted((one for one in launches if one.stands_in == pool), key=lambda one: (one.made_at, one.id))


def ready_nodes(view: PoolView, signs: SpotSigns) -> int:
    """How many of a pool's nodes are up and stay."""
    return sum(one.state is LaunchState.UP and one.node not in signs.leaving for one in view.launches)


def spot_plan(view: PoolView, fallback: PoolView | None, signs: SpotSigns) -> SpotPlan:
    """What a spot pool lacks of its least nodes, and which stand-ins go; these by the ids of their launches."""
    own = sorted(view.launches, key=lambda one: (one.made_at, one.id))
    plan = plan_spot_fleet(
        view.record.terms.least_nodes,
        [*_instances(own, signs, is_spot=True), *_instances(stand_ins_of(view.name, fallback), signs, is_spot=False)],
        view.zones,
        signs.avoided.get(view.name, ()),
        spares=signs.spares.get(view.name, 0),
        may_fall_back=fallback is not None,
    )
    stand_ins = {one.id for one in stand_ins_of(view.name, fallback)}
    return SpotPlan(
        spot=plan.spot, on_demand=plan.on_demand, ends=tuple(name for name in plan.ends if name in stand_ins)
    )


def stands_in(launch: LaunchRecord, views: Iterable[PoolView]) -> bool:
    """Whether a node stands in for those of a pool that is still there, and has the node's pool as its fallback."""
    return bool(launch.stands_in) and any(
        view.name == launch.stands_in and view.record.is_open and view.record.terms.fallback == launch.pool
        for view in views
    )


def relieved_nodes(view: PoolView, views: Iterable[PoolView], signs: SpotSigns) -> list[tuple[LaunchRecord, str]]:
    """Of a fallback: the nodes that stood in for a spot pool's which are ready now, and why they go."""
    found: list[tuple[LaunchRecord, str]] = []
    for spot in views:
        if spot.record.terms.is_spot and spot.record.terms.fallback == view.name:
            ends = spot_plan(spot, view, signs).ends
            found += [(one, RELIEVED) for one in view.launches if one.id in ends and one.state is LaunchState.UP]
    return found


def _instances(launches: Iterable[LaunchRecord], signs: SpotSigns, *, is_spot: bool) -> Iterable[PoolInstance]:
    return (
        PoolInstance(
            name=one.id,
            zone=one.zone,
            is_spot=is_spot,
            is_ready=one.state is LaunchState.UP,
            is_leaving=one.is_going or one.node in signs.leaving,
            is_at_risk=one.node in signs.at_risk,
        )
        for one in launches
    )
