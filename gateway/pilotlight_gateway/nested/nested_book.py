"""The nested calls of this gateway that have not ended, by the call that waits for each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.agent_questions import AskNested
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_gateway.nested.nested_rules import Lineage, TreeCount

NestedKey = tuple[str, int, int]
"""Its parent's id and grant, and its number."""


def key_of(asked: AskNested) -> NestedKey:
    return asked.parent, asked.grant_number, asked.number


class OpenNested:
    """One nested call that has not ended."""

    __slots__ = ("call_id", "is_left", "key", "lineage", "node", "place", "refusal", "reply", "task", "version")

    def __init__(self, key: NestedKey, node: str, lineage: Lineage, reply: str) -> None:
        self.key = key
        self.node = node
        """Where its parent runs."""
        self.lineage = lineage
        self.reply = reply
        """The subject on which its answer was asked for last."""
        self.call_id = ""
        """Its own, once it is a call."""
        self.version = ""
        self.is_left = False
        """Whether its parent waits for it no more, though it has not ended yet."""
        self.place: BodyRef | None = None
        """Where its request is to be left."""
        self.task: asyncio.Task[Any] | None = None
        """What carries it out; None: its request has not come."""
        self.refusal: PilotlightError | None = None
        """Why it was ended from here."""

    @property
    def parent(self) -> str:
        return self.key[0]


class NestedBook:
    """Counts nested calls, and knows where each call stands."""

    def __init__(self) -> None:
        self._open: dict[NestedKey, OpenNested] = {}
        self._of_parent: dict[str, dict[NestedKey, OpenNested]] = {}
        self._trees: dict[str, TreeCount] = {}
        self._lineages: dict[str, Lineage] = {}
        """By the id of a nested call that lives."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[OpenNested]:
        return iter(list(self._open.values()))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look after."""
        return not self._open and not self._trees

    def get(self, key: NestedKey) -> OpenNested | None:
        return self._open.get(key)

    def lineage_of(self, call_id: str) -> Lineage:
        """Where a live call stands; one that is not nested is from outside."""
        return self._lineages.get(call_id) or Lineage(call_id)

    def tree(self, root: str) -> TreeCount:
        """What is below a call from outside."""
        return self._trees.get(root) or TreeCount()

    def of_parent(self, call_id: str) -> list[OpenNested]:
        """What a call waits for."""
        return list(self._of_parent.get(call_id, {}).values())

    def enter(self, key: NestedKey, node: str, lineage: Lineage, reply: str) -> OpenNested:
        """Count a nested call, which stands at `lineage`."""
        one = self._open[key] = OpenNested(key, node, lineage, reply)
        self._of_parent.setdefault(one.parent, {})[key] = one
        tree = self._trees.setdefault(lineage.root, TreeCount())
        tree.open += 1
        tree.total += 1
        return one

    def begun(self, one: OpenNested, call_id: str, version: str) -> None:
        """It is a call now, and may make others."""
        one.call_id, one.version = call_id, version
        self._lineages[call_id] = one.lineage

    def close(self, one: OpenNested) -> None:
        """It has ended."""
        if self._open.pop(one.key, None) is None:
            return
        siblings = self._of_parent[one.parent]
        del siblings[one.key]
        if not siblings:
            del self._of_parent[one.parent]
        self._trees[one.lineage.root].open -= 1
        self._lineages.pop(one.call_id, None)

    def forget(self, is_live: Callable[[str], bool]) -> None:
        """Forget what was below calls from outside that have ended."""
        self._trees = {root: tree for root, tree in self._trees.items() if tree.open or is_live(root)}

    def check_integrity(self) -> None:
        """Raise AssertionError if parts of the state contradict each other."""
        counted: dict[str, int] = {}
        for one in self._open.values():
            counted[one.lineage.root] = counted.get(one.lineage.root, 0) + 1
        require(counted == {root: tree.open for root, tree in self._trees.items() if tree.open}, "a tree is miscounted")
        require(sum(map(len, self._of_parent.values())) == len(self._open), "a parent has another number of calls")
        require(all(self._of_parent.values()), "a parent without calls is kept")
        require(self._lineages.keys() <= {one.call_id for one in self._open.values()}, "a lineage outlives its call")
