"""What a keeper of pools knows of its spot nodes."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.pools.spot_pools import SpotPools
from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState
from tests.builders.nodes import node_report
from tests.builders.pools import launch, pool

SPOT = pool("spot", zones=("a", "b", "c"), purchase=Purchase.SPOT, least_nodes=2, fallback="sure")


class Place:
    """Spot pools over a world, at the monotonic instant 0."""

    def __init__(self) -> None:
        self.world, self.zones = World(), SpotZones()
        self.pools = SpotPools(self.world, self.zones, lambda: 0.0)

    def hear(self, node: str, notice: NodeNotice | None = None, **more: Any) -> None:
        self.world.on_report(node_report(node, spot=True, notice=notice, **more), 0.0)


def view(*launches: LaunchRecord) -> PoolView:
    return PoolView(record=SPOT, launches=launches, digest=SPOT.terms.digest)


def spot(number: int, **more: Any) -> LaunchRecord:
    return launch(number, SPOT, spot=True, **more)


def test_a_node_leaves_by_its_notice_or_by_its_silence() -> None:
    """One that comes is not silent yet; one at risk stays."""
    place = Place()
    place.hear("spot-n1", NodeNotice(kind=NoticeKind.PREEMPT, deadline=9.0))
    place.hear("spot-n2", NodeNotice(kind=NoticeKind.REBALANCE))
    coming = spot(4, state=LaunchState.LAUNCHING)
    signs = place.pools.signs([view(spot(1), spot(2), spot(3), coming)], 0.0)
    assert signs.leaving == {"spot-n1", "spot-n3"}
    assert signs.at_risk == {"spot-n2"}


def test_a_zone_without_machines_is_avoided() -> None:
    """What a provider says of machines on demand is nothing of this."""
    place = Place()
    place.pools.note_lack(spot(1))
    place.pools.note_lack(launch(1, pool("sure", zones=("b",))))
    assert place.pools.signs([view()], 0.0).avoided == {"spot": frozenset({"a"})}


def test_a_pool_that_falls_short_has_a_spare() -> None:
    """Only one whose operator wants it whole, which its fallback says."""
    place = Place()
    place.pools.signs([view()], 0.0)
    assert place.pools.signs([view()], 3_600.0).spares == {"spot": 1}
    alone = PoolView(record=pool("spot", purchase=Purchase.SPOT, least_nodes=2))
    assert place.pools.signs([alone], 7_200.0).spares == {}
