"""Agents' questions: who is answered, where, and how many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.bus import Bus, BusTimeout, bus_users, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import BlobLink, BlobWanted
from pilotlight_gateway.fleet.node_questions import AT_ONCE, NodeQuestions

WANTED = BlobWanted(container="c1", sha256="a" * 64)
THERE = BlobLink(url="https://there")
BUSY = BlobLink(reason="busy")


async def link(node: str, wanted: BlobWanted) -> BlobLink:
    return THERE


def heard_by(
    bus: Bus, region: str, answer: Callable[[str, BlobWanted], Awaitable[BlobLink]] = link
) -> NodeQuestions[BlobWanted]:
    return NodeQuestions(bus, subjects.blobs(region), BlobWanted, answer, queue="tests", busy=BUSY)


@asynccontextmanager
async def agent_of(server_url: str, node: str) -> AsyncIterator[Bus]:
    """A connection as a node's agent has it."""
    async with connect(server_url, name=node, inbox=bus_users.agent(node).inbox, makes_streams=False) as bus:
        yield bus


async def test_a_question_is_answered_for_the_node_of_its_subject(bus: Bus, server_url: str) -> None:
    """Whatever it says itself."""
    region, asked = f"r{token(8)}", list[str]()

    async def answer(node: str, wanted: BlobWanted) -> BlobLink:
        asked.append(node)
        return THERE

    async with heard_by(bus, region, answer).running(), agent_of(server_url, "n1") as agent:
        await bus.flush()
        assert await agent.request(subjects.blobs(region, "n1"), WANTED, 10.0) == THERE
    assert asked == ["n1"]


async def test_a_fault_is_logged_without_its_text(
    bus: Bus, server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which may hold a value; it ends no other question."""
    region = f"r{token(8)}"

    async def fail(node: str, wanted: BlobWanted) -> BlobLink:
        if wanted == WANTED:
            raise RuntimeError("a value that nobody sees")
        return THERE

    async with heard_by(bus, region, fail).running(), agent_of(server_url, "n1") as agent:
        await bus.flush()
        with pytest.raises(BusTimeout):
            await agent.request(subjects.blobs(region, "n1"), WANTED, 0.2)
        other = BlobWanted(container="c2", sha256="b" * 64)
        assert await agent.request(subjects.blobs(region, "n1"), other, 10.0) == THERE

    said = "".join(capsys.readouterr())
    assert "RuntimeError" in said
    assert "test_node_questions.py" in said
    assert "a value that nobody sees" not in said


@pytest.mark.parametrize("reply", ["$KV.TENANCY.tenant.acme", "_AGENT.n2.x.y", "_AGENT.n1", "_AGENT.n10.x.y"])
async def test_a_node_is_answered_in_its_own_inbox_alone(bus: Bus, server_url: str, reply: str) -> None:
    """What a gateway may write, a node must not make it write."""
    region, heard = f"r{token(8)}", list[object]()
    async with (
        heard_by(bus, region).running(),
        agent_of(server_url, "n1") as agent,
        agent.listening({reply: lambda *message: heard.append(message)}),
    ):
        await agent.flush()
        agent.publish_nowait(subjects.blobs(region, "n1"), WANTED, reply=reply)
        # And what came before is done with.
        assert await agent.request(subjects.blobs(region, "n1"), WANTED, 10.0) == THERE

    assert heard == []


async def test_one_node_does_not_keep_a_gateway_busy(bus: Bus, server_url: str) -> None:
    """Beyond so many open questions it is told to come later; others are not."""
    region, free = f"r{token(8)}", asyncio.Event()

    async def slow(node: str, wanted: BlobWanted) -> BlobLink:
        if node == "n1":
            await free.wait()
        return THERE

    async with (
        heard_by(bus, region, slow).running(),
        agent_of(server_url, "n1") as first,
        agent_of(server_url, "n2") as second,
    ):
        await bus.flush()
        subject = subjects.blobs(region, "n1")
        held = [asyncio.ensure_future(first.request(subject, WANTED, 30.0)) for _ in range(AT_ONCE + 1)]
        done, _ = await asyncio.wait(held, return_when=asyncio.FIRST_COMPLETED, timeout=30.0)
        assert [task.result() for task in done] == [BUSY]
        assert await second.request(subjects.blobs(region, "n2"), WANTED, 30.0) == THERE
        free.set()
        assert sorted(answer == THERE for answer in await asyncio.gather(*held)) == [False] + AT_ONCE * [True]
