"""Changes of the fleet, so that they can be undone and a past decision looked at again.

An `Op` can be read both ways. Those that stand go to a bounded `Journal`; those of a trial form a `Trail`, which a
decision keeps: so it knows what its plan had done before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pilotlight_placement.hardware.node import Node, PlacedContainer

JOURNAL = 50_000
"""Changes that are remembered: hours of a busy fleet; a few MiB."""


@dataclass(frozen=True, kw_only=True)
class Op:
    """One change: of a container's hold (`held`, taken or given back), or of a node's description."""

    revision: int
    """Of the fleet after it."""
    held: PlacedContainer | None = None
    taken: bool = True
    before: Node | None = None
    after: Node | None = None


@dataclass(frozen=True, kw_only=True)
class Trail:
    """The ops of a trial up to some point, newest first. Immutable, so it costs one link to keep."""

    op: Op
    earlier: Trail | None


class Journal:
    """The ops that stand, oldest first, up to a bound."""

    def __init__(self, most: int = JOURNAL) -> None:
        self._ops: deque[Op] = deque(maxlen=most)

    def add(self, op: Op) -> None:
        self._ops.append(op)

    def since(self, revision: int, now: int) -> list[Op] | None:
        """The ops after a revision, newest first; None if they are not all remembered."""
        if revision == now:
            return []
        if not self._ops or self._ops[0].revision > revision + 1 or revision > now:
            return None
        return [op for op in reversed(self._ops) if op.revision > revision]


def chain(trail: Trail | None) -> Iterator[Op]:
    """The ops of a trail, newest first."""
    while trail is not None:
        yield trail.op
        trail = trail.earlier
