"""The containers that a fleet holds because nodes report them, or because they are on their way; nothing else.

What is the same as before is not looked at again: a thousand nodes report each second, and hardly any container changes
its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import PlacedContainer

Reported = Mapping[str, Sequence[PlacedContainer]]
"""By node."""


class ReportedHolds:
    """Keeps a fleet's containers equal to what is reported and expected."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._by_node: dict[str, Sequence[PlacedContainer]] = {}
        self._wanted: dict[str, PlacedContainer] = {}
        """The reported ones, by their name in the fleet."""
        self._expected: dict[str, PlacedContainer] = {}
        """Those on their way."""
        self._refused: set[str] = set()
        """Wanted ones that had no place when they were last tried."""
        self._twice = False
        """Whether two nodes report one container."""
        self._revision = fleet.revision
        """The fleet's, after the last change that was made here."""
        self._is_foreign = False
        """Whether somebody else has changed the fleet since it was settled."""
        self._is_described = False
        """Whether a node was described anew since then."""

    def since(self, container: str, default: float) -> float:
        """The instant at which a reported container came; `default` if it is new."""
        held = self._wanted.get(container)
        return held.since if held is not None else default

    def note_foreign(self) -> None:
        """Whatever has changed the fleet until now was somebody else."""
        self._is_foreign |= self._fleet.revision != self._revision

    def described(self, nodes: Sequence[str]) -> None:
        """These nodes were described anew, or are gone, and nothing else has changed since `note_foreign`."""
        if self._fleet.revision == self._revision:
            return
        self._is_described, self._revision = True, self._fleet.revision
        held = self._fleet.held
        for node in nodes:
            # A part of it may be gone, and be back. Of two that are reported alike, each has another name.
            reported = self._by_node.get(node, ())
            self._refused |= {each.container for each in reported if each.container not in held} & self._wanted.keys()
        self._is_foreign |= self._twice

    def report(self, reported: Reported) -> None:
        """Take what nodes report now; a node with nothing may be gone. Of all others nothing is new."""
        self.note_foreign()
        changed = [name for name, held in reported.items() if self._by_node.get(name, ()) is not held]
        left = {held.container: held for name in changed for held in self._by_node.get(name, ())}
        came = [held for name in changed for held in reported[name]]
        for name in changed:
            if reported[name]:
                self._by_node[name] = reported[name]
            else:
                self._by_node.pop(name, None)
        if self._twice or not self._replace(left, came):
            self._read_all()
        self._revision = self._fleet.revision

    def settle(self, expected: Mapping[str, PlacedContainer | None]) -> None:
        """Make the fleet hold what is reported, and of what is `expected` the rest."""
        now = {name: held for name, held in expected.items() if held is not None and name not in self._wanted}
        held_by = self._fleet.held
        foreign = self._is_foreign or self._fleet.revision != self._revision
        if not (foreign or self._is_described or self._refused) and now == self._expected:
            return
        if foreign:
            wanted = self._wanted
            for name in [name for name, held in held_by.items() if not _is(held, wanted.get(name, now.get(name)))]:
                self._fleet.release(name)
            due = [name for name in self._wanted if name not in held_by]
        else:
            # Not by sets: the difference with all that is wanted would go over each of it.
            for name in [each for each in self._expected if each not in now and each not in self._wanted]:
                self._release(name)
            due = sorted(self._refused)
        self._refused = {name for name in due if not self._hold(self._wanted[name])}
        for held in now.values():
            self._hold(held)
        self._expected, self._revision = now, self._fleet.revision
        self._is_foreign = self._is_described = False

    def _replace(self, left: dict[str, PlacedContainer], came: Sequence[PlacedContainer]) -> bool:
        """Take a few changes; False if a container is there twice."""
        for held in came:
            before = left.pop(held.container, None)
            if before is None and held.container in self._wanted:
                return False
            if before == held:
                continue
            if before is not None:
                self._drop(held.container)
            self._wanted[held.container] = held
            self._refused.add(held.container)
        for name in left:
            self._drop(name)
        return True

    def _drop(self, name: str) -> None:
        del self._wanted[name]
        self._refused.discard(name)
        self._release(name)

    def _read_all(self) -> None:
        before, self._wanted = self._wanted, {}
        self._twice = False
        for reported in self._by_node.values():
            for held in reported:
                # One of two reports is outdated: both slices are taken.
                twice = held.container in self._wanted
                self._twice |= twice
                name = f"{held.container} {held.slice}" if twice else held.container
                self._wanted[name] = replace(held, container=name) if twice else held
        for name in before.keys() | self._expected.keys():
            there = self._fleet.held.get(name)
            if there is not None and not _is(there, self._wanted.get(name, self._expected.get(name))):
                self._fleet.release(name)
        self._refused = {name for name in self._wanted if name not in self._fleet.held}

    def _release(self, name: str) -> None:
        if name in self._fleet.held:
            self._fleet.release(name)

    def _hold(self, held: PlacedContainer) -> bool:
        # A contradictory report, or a slice that is not free yet, must not stop the controller.
        there = self._fleet.held.get(held.container)
        if there is not None and not _is(there, held):  # it was expected elsewhere
            self._fleet.release(held.container)
            there = None
        if there is None:
            if self._fleet.refusal(held):
                return False
            self._fleet.hold(held)
        return True


def _is(held: PlacedContainer, wanted: PlacedContainer | None) -> bool:
    return held is wanted or held == wanted
