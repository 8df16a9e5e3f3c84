"""The present incarnation of each node's agent.

A new agent on a node proves that everything of the old one is gone. Silence proves nothing: after `LOST_AFTER_S` the
agent *counts* as gone, and may still come back with what it holds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

LOST_AFTER_S = 10.0
"""Silence after which an agent's calls are given up: ten of its heartbeats."""
PAUSED_AFTER_S = 1.0
"""Between two calls of `lost`; a longer gap means that this process itself stood still."""
FORGOTTEN_AFTER_S = 3_600.0
"""After which a node that is gone is forgotten: none of its messages is under way."""
REMEMBERED = 8
"""Former incarnations of a node whose late messages are recognised."""


@dataclass(frozen=True, slots=True)
class GoneNode:
    """An incarnation that is gone, with the reason for people."""

    node: str
    instance: str
    reason: str


class NodeIncarnations:
    """Incarnations by node, and the instants of their last messages."""

    def __init__(self) -> None:
        self._instances: dict[str, str] = {}
        """By node, counted as gone or not."""
        self._seen_at: dict[str, float] = {}
        """node -> its last message, unless it counts as gone."""
        self._former: dict[str, deque[str]] = {}
        self._last_seen_at: dict[str, float] = {}
        """node -> its last message, as of the last `forget`."""
        self._looked: float | None = None

    def current(self, node: str) -> str | None:
        """The node's present incarnation; None if it has none."""
        return self._instances[node] if node in self._seen_at else None

    def seen(self, node: str, instance: str, at: float) -> GoneNode | None:
        """A message of the incarnation has come. Returns the one that it replaces, unless that was returned before."""
        before = self._instances.get(node)
        if before != instance and self.is_former(node, instance):
            return None
        followed = before is not None and before != instance
        is_reported = node not in self._seen_at
        self._instances[node] = instance
        self._seen_at[node] = at
        if before is None or not followed:
            return None
        self._former.setdefault(node, deque(maxlen=REMEMBERED)).append(before)
        return None if is_reported else GoneNode(node, before, "its node's agent was started anew")

    def is_former(self, node: str, instance: str) -> bool:
        """Whether another incarnation has replaced this one: its messages are old."""
        return instance in self._former.get(node, ())

    def is_gone(self, node: str, instance: str) -> bool:
        """Whether this incarnation has been replaced, or counts as gone; False for one that was never seen."""
        counts_as_gone = self._instances.get(node) == instance and node not in self._seen_at
        return counts_as_gone or self.is_former(node, instance)

    def forget(self, at: float) -> None:
        """Forget nodes that have been silent for long: new nodes have new names."""
        before = self._last_seen_at
        self._last_seen_at = {node: self._seen_at.get(node, before.get(node, at)) for node in self._instances}
        for node in [node for node, seen_at in self._last_seen_at.items() if seen_at < at - FORGOTTEN_AFTER_S]:
            for known in (self._instances, self._seen_at, self._former, self._last_seen_at):
                known.pop(node, None)

    def stopped(self, node: str, instance: str) -> GoneNode | None:
        """The agent has reported its end."""
        if self.current(node) != instance:
            return None
        del self._seen_at[node]
        return GoneNode(node, instance, "its node's agent was stopped")

    def lost(self, at: float) -> list[GoneNode]:
        """The incarnations that have been silent for too long, each once for each silence.

        Call it at least once a second. After a longer gap no node is lost: this process did not listen, and the
        messages of that time are still to be read.
        """
        looked, self._looked = self._looked, at
        if looked is not None and at - looked > PAUSED_AFTER_S:
            self._seen_at = {node: seen_at + (at - looked) for node, seen_at in self._seen_at.items()}
        silent = [node for node, seen_at in self._seen_at.items() if seen_at < at - LOST_AFTER_S]
        for node in silent:
            del self._seen_at[node]
        reason = f"its node was silent for {LOST_AFTER_S:.0f} s"
        return [GoneNode(node, self._instances[node], reason) for node in silent]
