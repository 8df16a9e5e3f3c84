"""Messages of agents that were not believed: counted, and told in the log with a bound on the rate."""

from __future__ import annotations

from collections import Counter

import structlog

LOG_EVERY_S = 10.0
"""Between two lines about one node."""
NODES = 1_000
"""Nodes whose last line is remembered; each is a user of the bus, so there are few."""

log = structlog.get_logger(__name__)


class NodeFaults:
    """Instants are monotonic seconds."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Messages by reason, since the start."""
        self._told_at: dict[str, float] = {}
        self._untold: Counter[str] = Counter()

    def note(self, node: str, what: str, reason: str, at: float) -> None:
        """A message of `node` was dropped: `what` it was, and why."""
        self.counts[reason] += 1
        if at - self._told_at.get(node, float("-inf")) < LOG_EVERY_S:
            self._untold[node] += 1
            return
        if len(self._told_at) >= NODES:
            self._told_at.clear()
            self._untold.clear()
        self._told_at[node] = at
        more = self._untold.pop(node, 0)
        log.warning("a node's message was not believed", node=node, what=what, reason=reason, more=more)
