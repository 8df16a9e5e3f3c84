"""Nodes' answers about packages come to whoever asked, and from the node that was asked alone."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import DescribePackages, PackagesDescribed, PackagesLocked
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_gateway.supply.package_questions import PackageQuestions, is_joined


def question(name: str, gateway: str) -> DescribePackages:
    return DescribePackages(question=name, gateway=gateway, tenant="acme", base="default")


async def test_an_answer_is_of_the_node_that_was_asked_and_of_the_kind_that_was_asked_for(bus: Bus, other: Bus) -> None:
    """Two questions at once are two; one in another's name, or too late, is none."""
    region = f"r{token(8)}"
    questions = PackageQuestions(bus, region=region, gateway="gw-1")

    def answer(subject: str, message: Any, _: str) -> None:
        node = subject.split(".")[3]
        told = PackagesDescribed(question=message.question, words=f"of {node}")
        if node == "forger":
            node = "n1"
        if node == "locks":
            other.publish_nowait(
                subjects.packages_locked(region, message.gateway, node), PackagesLocked(question=message.question)
            )
        elif node != "silent":
            other.publish_nowait(subjects.packages_locked(region, message.gateway, node), told)

    async def ask(node: str, within_s: float = 5.0) -> str | None:
        found = await questions.ask(node, PackagesDescribed, question, within_s=within_s)
        return None if found is None else found.words

    async with questions.running(), other.listening({subjects.lock_packages(region, "*"): answer}):
        await bus.flush()
        await other.flush()
        found = await asyncio.gather(ask("n1"), ask("n2"), ask("forger", 0.1))
        assert list(found) == ["of n1", "of n2", None]
        assert (await ask("silent", 0.01), await ask("locks")) == (None, None)
        questions.on_answer(subjects.packages_locked(region, "gw-1", "n1"), PackagesDescribed(question="late"), "")


def test_a_node_joined_or_is_the_operators_own() -> None:
    """What is not on record was put into the bus's configuration by the operator."""

    class Records:
        def node_nowait(self, node: str) -> NodeRecord | None:
            labels = NodeLabels(region="r", zone="z")
            return NodeRecord(node=node, labels=labels) if node == "joined" else None

    assert is_joined(Records(), "joined")
    assert not is_joined(Records(), "own")
