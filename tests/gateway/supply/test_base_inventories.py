"""Nodes tell what packages there are: the operator's own first, and a deploy waits for none that is silent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import DescribePackages, PackagesDescribed
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_core.model.supply.inventories import PackageFact
from pilotlight_core.model.versions.manifest_codec import INVENTORY
from pilotlight_gateway.supply import base_inventories
from pilotlight_gateway.supply.base_inventories import KEPT_S, BusInventories, KnownPackages
from pilotlight_gateway.supply.package_questions import PackageQuestions
from tests.builders.nodes import node_report
from tests.builders.supply import BASE, lock_of

Reply = Callable[[DescribePackages], PackagesDescribed | None]
LOCK = lock_of(duckdb="1.3")


def node(name: str, **more: Any) -> NodeReport:
    return node_report(name, **{"features": (INVENTORY,)} | more)


def told(asked: DescribePackages) -> PackagesDescribed:
    locked = (PackageFact(name="duckdb", version="1.3", licence="MIT"),) if asked.lock is not None else ()
    return PackagesDescribed(question=asked.question, base=BASE, locked=locked)


class AskedNodes:
    """A gateway, and nodes that answer as `replies` say."""

    def __init__(self, bus: Bus, other: Bus, *reports: NodeReport) -> None:
        self.region, self.now = f"r{token(8)}", 0.0
        self.replies: dict[str, Reply] = {}
        self.heard: list[str] = []
        self.joined: set[str] = set()
        self._reports, self._other = reports, other
        self.questions = PackageQuestions(bus, region=self.region, gateway="gw-1")
        self.inventories = BusInventories(self.questions, self, self, lambda: self.now)

    def reports(self, _: float) -> tuple[NodeReport, ...]:
        return self._reports

    def node_nowait(self, node: str) -> NodeRecord | None:
        return NodeRecord(node=node, labels=NodeLabels(region="r", zone="z")) if node in self.joined else None

    def on_question(self, subject: str, message: Any, _: str) -> None:
        name = subject.split(".")[3]
        self.heard.append(name)
        if (answer := self.replies[name](message)) is not None:
            self._other.publish_nowait(subjects.packages_locked(self.region, message.gateway, name), answer)


@asynccontextmanager
async def asking(bus: Bus, other: Bus, *reports: NodeReport) -> AsyncIterator[AskedNodes]:
    world = AskedNodes(bus, other, *reports)
    heard = {subjects.lock_packages(world.region, "*"): world.on_question}
    async with world.questions.running(), other.listening(heard):
        await bus.flush()
        await other.flush()
        yield world


async def test_what_is_told_is_kept_for_a_while(bus: Bus, other: Bus) -> None:
    """Of a base, and apart of each lock over it."""
    async with asking(bus, other, node("n1")) as world:
        world.replies = {"n1": told}
        for _ in range(2):
            assert await world.inventories.known("acme", "default") == KnownPackages(BASE, {})
            assert (await world.inventories.known("acme", "default", LOCK)).licences == {"pkg:pypi/duckdb@1.3": "MIT"}
        assert len(world.heard) == 2
        world.now = KEPT_S
        await world.inventories.known("acme", "default")
        assert len(world.heard) == 3


async def test_the_operators_own_nodes_are_asked_first(bus: Bus, other: Bus) -> None:
    """Others where there is none, or it cannot tell; and none that could not, or has another base."""
    nodes = (node("joined"), node("own"), node("old", features=()), node("else", bases=("torch",)))
    async with asking(bus, other, *nodes) as world:
        world.joined = {"joined"}
        world.replies = dict.fromkeys(("joined", "own", "old", "else"), told)
        assert (await world.inventories.known("acme", "default")).base == BASE
        assert world.heard == ["own"]

        world.replies["own"] = lambda asked: PackagesDescribed(question=asked.question, words="the disk is full")
        world.now = KEPT_S
        assert (await world.inventories.known("acme", "default")).base == BASE
        assert world.heard == ["own", "own", "joined"]


async def test_a_silent_node_and_a_foreign_answer_are_nothing(
    bus: Bus, other: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is made up, and nothing remembered of it."""
    monkeypatch.setattr(base_inventories, "BASE_S", 0.05)

    def forge(asked: DescribePackages) -> None:
        forged = told(asked)
        other.publish_nowait(subjects.packages_locked(world.region, "gw-1", "n2"), forged)

    async with asking(bus, other, node("n1")) as world:
        world.replies = {"n1": forge}
        assert await world.inventories.known("acme", "default") == KnownPackages()
        world.replies = {"n1": told}
        assert (await world.inventories.known("acme", "default")).base == BASE
    async with asking(bus, other) as world:
        assert await world.inventories.known("acme", "default") == KnownPackages()
