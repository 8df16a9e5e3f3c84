"""Which incarnation of each node's agent is the present one.

A new agent on a node means that everything of the old one is gone, for certain. Silence means nothing for certain:
after `LOST_AFTER` the agent is *counted* as gone, and may still come back and speak for what it holds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

LOST_AFTER = 10.0
"""Seconds of silence after which what an agent ran is given up: ten of its heartbeats."""
PAUSED_AFTER = 1.0
"""A longer time between two looks means that this process itself stood still."""
FORGOTTEN_AFTER = 3_600.0
"""Seconds after which nothing more is known of a node that is gone: none of its messages is on the way any more."""
REMEMBERED = 8
"""Former incarnations of a node whose late messages are recognised."""


@dataclass(frozen=True, slots=True)
class GoneNode:
    """An incarnation of an agent that is gone, and why (for people)."""

    node: str
    instance: str
    reason: str


class NodeIncarnations:
    """The nodes that have been heard of, and when each spoke last."""

    def __init__(self) -> None:
        self._instances: dict[str, str] = {}
        """node -> its last incarnation, counted as gone or not."""
        self._heard: dict[str, float] = {}
        """node -> when it spoke last, unless it is counted as gone."""
        self._former: dict[str, deque[str]] = {}
        self._spoke: dict[str, float] = {}
        """node -> when it spoke last, as of the last look for what can be forgotten."""
        self._looked: float | None = None

    def current(self, node: str) -> str | None:
        """The node's present incarnation; None if it has none."""
        return self._instances[node] if node in self._heard else None

    def seen(self, node: str, instance: str, at: float) -> GoneNode | None:
        """A message of the incarnation has come. Returns the one that it follows, if that was not told as gone yet."""
        before = self._instances.get(node)
        if before != instance and self.is_former(node, instance):
            return None
        followed = before is not None and before != instance
        told = node not in self._heard
        self._instances[node] = instance
        self._heard[node] = at
        if before is None or not followed:
            return None
        self._former.setdefault(node, deque(maxlen=REMEMBERED)).append(before)
        return None if told else GoneNode(node, before, "its node's agent was started anew")

    def is_former(self, node: str, instance: str) -> bool:
        """Whether the incarnation has been followed by another: what it still says is old."""
        return instance in self._former.get(node, ())

    def forget(self, at: float) -> None:
        """Forget the nodes that have been silent for long. Fleets shrink and grow under new names all the time."""
        self._spoke = {node: self._heard.get(node, self._spoke.get(node, at)) for node in self._instances}
        for node in [node for node, spoke in self._spoke.items() if spoke < at - FORGOTTEN_AFTER]:
            for known in (self._instances, self._heard, self._former, self._spoke):
                known.pop(node, None)

    def stopped(self, node: str, instance: str) -> GoneNode | None:
        """The agent has said that it ends."""
        if self.current(node) != instance:
            return None
        del self._heard[node]
        return GoneNode(node, instance, "its node's agent was stopped")

    def lost(self, at: float) -> list[GoneNode]:
        """The incarnations that have been silent for too long; each is told once, and again only if it spoke since.

        To be called at least once a second. After a longer gap nobody is lost: it was this process that did not
        listen, and the messages of that time are still to be read.
        """
        looked, self._looked = self._looked, at
        if looked is not None and at - looked > PAUSED_AFTER:
            self._heard = {node: heard + (at - looked) for node, heard in self._heard.items()}
        silent = [node for node, heard in self._heard.items() if heard < at - LOST_AFTER]
        for node in silent:
            del self._heard[node]
        reason = f"its node was silent for {LOST_AFTER:.0f} s"
        return [GoneNode(node, self._instances[node], reason) for node in silent]
