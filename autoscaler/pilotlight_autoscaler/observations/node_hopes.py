"""What versions without a place may hope for: a node of a pool that comes, or why none does. Instants: unix seconds.

The keeper of pools writes it; passes read it for what they tell callers, who would be refused at once otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pilotlight_autoscaler.policy.nodes.machine_capacity import capacity_for
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_core.model.api.pools.pool_terms import PoolProvider
from pilotlight_core.model.messages.node_messages import Shortage
from pilotlight_core.model.units import duration_text
from pilotlight_placement.asks.ask import Ask

FIRST_GUESS_S = 90.0
"""How long a machine takes to report, before one of its pool has."""
FIRST_LOCAL_GUESS_S = 3.0
"""The same of an agent on this machine."""


@dataclass(frozen=True, kw_only=True)
class AwaitedNode:
    """The launch that a version waits for."""

    pool: str
    node: str
    since: float


@dataclass(kw_only=True)
class NodeHopes:
    pools: Sequence[PoolView] = ()
    awaited: Mapping[str, AwaitedNode] = field(default_factory=dict)
    """By version."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By version: why no pool gets a node for it."""
    start_s: dict[str, float] = field(default_factory=dict)
    """By pool: how long machines took from their launch to their first report, smoothed."""

    _known: tuple[Mapping[str, AwaitedNode], Mapping[str, str]] = ({}, {})
    """What was awaited and refused when `take_changed` was last asked."""

    def take_changed(self) -> set[str]:
        """The versions that may hope for something else than when this was last asked."""
        awaited, refused = self._known
        if awaited is self.awaited and refused is self.refused:
            return set()
        self._known = self.awaited, self.refused
        changed = {one for one in awaited.keys() | self.awaited.keys() if awaited.get(one) != self.awaited.get(one)}
        both = refused.keys() | self.refused.keys()
        return changed.union(one for one in both if refused.get(one) != self.refused.get(one))

    def is_any(self, ask: Ask) -> bool:
        """Whether some pool could have a node that serves an ask, when there is room for it."""
        return bool(self.pool_for(ask))

    def pool_for(self, ask: Ask) -> str:
        """The first such pool; "": none."""
        for view in self.pools:
            terms = view.record.terms
            if not (view.record.is_open and terms.most_nodes):
                continue
            machines = ((type_, zone) for type_ in terms.types for zone in view.zones)
            if any(capacity_for(ask, view, type_, zone) for type_, zone in machines):
                return view.name
        return ""

    def text(self, version: str, wall: float) -> str:
        """What a version waits for, in words; ""."""
        if (node := self.awaited.get(version)) is not None:
            since = duration_text(max(0.0, wall - node.since))
            return f"waiting for a node of the pool {node.pool}, {node.node}, since {since}"
        return self.refused.get(version, "")

    def with_hope(self, shortage: Shortage, wall: float) -> Shortage:
        """What callers hear of a shortage: also which node comes, or why none does."""
        version = shortage.version
        if (node := self.awaited.get(version)) is not None:
            return replace(
                shortage,
                reason=f"{shortage.reason}; waiting for a node of the pool {node.pool}",
                room_ms=self.expected_s(version, wall) * 1000.0,
            )
        why = self.refused.get(version)
        return replace(shortage, reason=f"{shortage.reason}; {why}") if why else shortage

    def expected_s(self, version: str, wall: float) -> float:
        """When the node is expected that a version waits for, in seconds; 0.0: not known."""
        node = self.awaited.get(version)
        if node is None:
            return 0.0
        return max(1.0, self.start_s.get(node.pool, self._guess_s(node.pool)) - (wall - node.since))

    def _guess_s(self, pool: str) -> float:
        is_local = any(view.name == pool and view.record.terms.provider is PoolProvider.LOCAL for view in self.pools)
        return FIRST_LOCAL_GUESS_S if is_local else FIRST_GUESS_S
