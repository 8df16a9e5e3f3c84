"""Whose turn it is to have something built."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from pilotlight_runtime.environments.build_turns import (
    AT_ONCE,
    HALF_LIFE_S,
    MOST_OF_TENANT,
    MOST_WAITING,
    BuildTurns,
    NoTurn,
)


@dataclass
class Line:
    """Works that hold their turn until they are told to leave it."""

    group: asyncio.TaskGroup
    at_once: int = AT_ONCE
    now: float = 0.0
    held: list[str] = field(default_factory=list)
    """Whose turn it was, in order."""
    leave: dict[int, asyncio.Event] = field(default_factory=dict)
    """By place in `held`."""

    def __post_init__(self) -> None:
        self.turns = BuildTurns(lambda: self.now, at_once=self.at_once)

    async def _work(self, tenant: str) -> None:
        async with self.turns.turn(tenant):
            mine = self.leave[len(self.held)] = asyncio.Event()
            self.held.append(tenant)
            await mine.wait()

    async def come(self, *tenants: str) -> list[asyncio.Task[None]]:
        tasks = [self.group.create_task(self._work(tenant)) for tenant in tenants]
        await self.settle()
        return tasks

    async def go(self, place: int, after_s: float = 1.0) -> None:
        self.now += after_s
        self.leave[place].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def empty(self) -> None:
        """Everybody leaves, one after the other."""
        for place in range(len(self.held) + self.turns.waiting):
            await self.go(place, 0.0)
        assert self.turns.waiting == 0


async def test_a_tenant_has_one_turn_at_a_time() -> None:
    """Whoever asks for many holds up himself alone."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        await line.come("acme", "acme", "acme", "rival", "late")
        assert (line.held, line.turns.waiting) == (["acme", "rival"], 3)
        await line.empty()
        assert sorted(line.held) == ["acme", "acme", "acme", "late", "rival"]


async def test_where_there_is_memory_for_one_the_next_one_waits() -> None:
    """Of whatever tenant."""
    async with asyncio.TaskGroup() as group:
        line = Line(group, at_once=1)
        await line.come("acme", "rival")
        assert (line.held, line.turns.waiting) == (["acme"], 1)
        await line.empty()
        assert line.held == ["acme", "rival"]


async def test_whoever_has_had_least_is_next() -> None:
    """Not who came first; of equals he is. What was had long ago counts less."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        await line.come("slow", "busy")
        await line.come("slow", "busy", "new", "newer")
        await line.go(0, 600.0)
        await line.go(1, 0.0)
        assert line.held == ["slow", "busy", "new", "newer"]
        await line.go(2, 1.0)
        assert line.held[4:] == ["slow"]
        await line.empty()
        line.now += 20 * HALF_LIFE_S
        await line.come("other", "another")
        first = len(line.held) - 2
        await line.come("slow")
        await line.come("fresh")
        await line.go(first, 100.0)
        assert line.held[-1] == "fresh"
        await line.empty()


async def test_nobody_waits_for_longer_than_he_has_had() -> None:
    """However many others come who have had nothing."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        await line.come("slow", "other")
        await line.go(0, 60.0)
        await line.come("between", "slow")
        assert line.held == ["slow", "other", "between"]
        for number in range(8):
            await line.come(f"fresh{number}")
            await line.go(len(line.held) - 1, 10.0)
        assert line.held.index("slow", 1) in range(7, 11)
        await line.empty()


async def test_the_line_is_bounded_and_a_tenants_part_of_it() -> None:
    """Whoever finds no place there is told so."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        tasks = await line.come("acme", "rival", *["acme"] * MOST_OF_TENANT)
        with pytest.raises(NoTurn, match="of yours wait"):
            async with line.turns.turn("acme"):
                raise AssertionError
        for task in tasks[3:]:
            task.cancel()
        await line.settle()
        tasks += await line.come(*(f"t{n}" for n in range(MOST_WAITING - 1)))
        with pytest.raises(NoTurn, match=f"{MOST_WAITING} wait"):
            async with line.turns.turn("one more"):
                raise AssertionError
        assert line.turns.waiting == MOST_WAITING
        await line.empty()
        assert all(task.done() for task in tasks)


async def test_in_a_full_line_whoever_has_most_places_gives_one_up() -> None:
    """A few tenants that fill it do not keep others out; who has as many as they finds no place."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        greedy = [f"g{n}" for n in range(MOST_WAITING // MOST_OF_TENANT)]
        await line.come("x", "y")
        refused: list[str] = []

        async def come(tenant: str) -> None:
            try:
                await line._work(tenant)
            except NoTurn:
                refused.append(tenant)

        for tenant in greedy * MOST_OF_TENANT:
            group.create_task(come(tenant))
        await line.settle()
        assert (line.turns.waiting, refused) == (MOST_WAITING, [])
        await line.come("small")
        assert (line.turns.waiting, refused) == (MOST_WAITING, [greedy[0]])
        for _ in range(2):
            group.create_task(come("g3"))
        await line.settle()
        assert refused[1:] == ["g3", "g3"]
        await line.empty()
        assert line.held.count("small") == 1
        assert len(line.held) == 2 + MOST_WAITING


async def test_whoever_goes_while_he_waits_holds_up_nobody() -> None:
    """Before his turn, and at the very moment of it."""
    async with asyncio.TaskGroup() as group:
        line = Line(group)
        await line.come(*"ab")
        (waiting, next_) = await line.come(*"cd")
        waiting.cancel()
        await line.settle()
        assert line.turns.waiting == 1
        line.leave[0].set()
        await asyncio.sleep(0)
        assert line.turns.waiting == 0
        next_.cancel()  # its turn was given, and it has not begun
        await line.settle()
        await line.come("e")
        assert line.held[-1] == "e"
        assert len(line.held) <= AT_ONCE + 2
        await line.empty()
