"""What a keeper of pools knows of its spot nodes: which leave, which are at risk, where there are none, and how whole
each pool was lately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pilotlight_autoscaler.observations.spot_zones import SpotZones
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_autoscaler.policy.nodes.spot_nodes import SpotSigns, ready_nodes
from pilotlight_autoscaler.policy.spot.capacity_goal import CapacityGoal
from pilotlight_core.model.messages.node_messages import NoticeKind
from pilotlight_core.model.records.nodes import is_at_risk
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState


class SpotPools:
    """`clock` gives the seconds in which the world's instants are."""

    def __init__(self, world: World, zones: SpotZones, clock: Callable[[], float]) -> None:
        self._world = world
        self._zones = zones
        self._clock = clock
        self._goals: dict[str, CapacityGoal] = {}

    def note_lack(self, launch: LaunchRecord) -> None:
        """Its provider has said that it takes the machine away, or that it had none to give."""
        if launch.spot:
            self._zones.on_preempted(launch.zone, self._clock())

    def signs(self, views: Sequence[PoolView], at: float) -> SpotSigns:
        """What decisions need to know, at the unix second `at`."""
        spot = [view for view in views if view.record.terms.is_spot]
        self._goals = {view.name: self._goals.get(view.name) or CapacityGoal() for view in spot if has_goal(view)}
        nodes = [one.node for view in spot for one in view.launches if one.state is LaunchState.UP]
        now = self._clock()
        found = SpotSigns(
            leaving=frozenset(node for node in nodes if self._leaves(node)),
            at_risk=frozenset(node for node in nodes if self._is_at_risk(node)),
            avoided={view.name: self._zones.avoided(view.zones, now) for view in spot},
        )
        for view in spot:
            if (goal := self._goals.get(view.name)) is not None:
                goal.note(at, is_short=ready_nodes(view, found) < view.record.terms.least_nodes)
        spares = {name: goal.spares for name, goal in self._goals.items()}
        return SpotSigns(leaving=found.leaving, at_risk=found.at_risk, avoided=found.avoided, spares=spares)

    def _leaves(self, node: str) -> bool:
        report = self._world.nodes.get(node)
        return report is None or (report.notice is not None and report.notice.kind is NoticeKind.PREEMPT)

    def _is_at_risk(self, node: str) -> bool:
        report = self._world.nodes.get(node)
        return report is not None and is_at_risk(report)


def has_goal(view: PoolView) -> bool:
    """Whether a spare stands by in bad times: of pools whose operator wants them whole."""
    return bool(view.record.terms.least_nodes and view.record.terms.fallback)
