"""Changes of the fleet, recorded to undo them and to rebuild the fleet of a past decision.

An `Op` is reversible. Ops outside of trials go to a bounded `Journal`; those of a trial form a `Trail`, which a
decision keeps as the earlier changes of its plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from pilotlight_placement.hardware.node import Node, PlacedContainer

JOURNAL = 50_000
"""Recorded changes: hours of a busy fleet; a few MiB."""


@dataclass(frozen=True, kw_only=True)
class Op:
    """One change: a container's hold (`held`, taken or released), or a node's description."""

    revision: int
    held: PlacedContainer | None = None
    taken: bool = True
    before: Node | None = None
    after: Node | None = None


@dataclass(frozen=True, kw_only=True)
class Trail:
    """The ops of a trial up to some point, newest first; an immutable list."""

    op: Op
    earlier: Trail | None


class Journal:
    """The standing ops, oldest first, up to a bound."""

    def __init__(self, most: int = JOURNAL) -> None:
        self._ops: deque[Op] = deque(maxlen=most)

    def add(self, op: Op) -> None:
        self._ops.append(op)

    def since(self, revision: int, now: int) -> list[Op] | None:
        """The ops after a revision, newest first; None if the journal does not reach so far."""
        if revision == now:
            return []
        if not self._ops or self._ops[0].revision > revision + 1 or revision > now:
            return None
        return list(takewhile(lambda op: op.revision > revision, reversed(self._ops)))


def chain(trail: Trail | None) -> Iterator[Op]:
    while trail is not None:
        yield trail.op
        trail = trail.earlier
