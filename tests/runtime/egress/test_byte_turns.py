"""In whose turn bytes are moved."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from pilotlight_runtime.egress.byte_turns import LEAST_BYTES, PART_BYTES, ByteTurns


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Moves:
    """Tenants that would move bytes without end; turns of the loop come when the test says so."""

    def __init__(self, turn_bytes: int = 16 * PART_BYTES) -> None:
        self.due: list[Callable[[], None]] = []
        self.turns = ByteTurns(self.due.append, turn_bytes)
        self.turned = asyncio.Event()
        self.moved = Counter[str]()
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self, tenant: str, connections: int, size: int = PART_BYTES, *, away: int = 0) -> None:
        """`away`: the turns for which each waits for its sockets after each move."""
        self.tasks += [asyncio.ensure_future(self._move(tenant, size, away)) for _ in range(connections)]

    async def _move(self, tenant: str, size: int, away: int) -> None:
        while True:
            for _ in range(away):
                await self.turned.wait()
            await self.turns.take(tenant, size)
            self.moved[tenant] += size
            await asyncio.sleep(0)

    async def turn(self, count: int = 1) -> None:
        for _ in range(count):
            for _ in range(10):
                await asyncio.sleep(0)
            self.turned.set()
            self.turned = asyncio.Event()
            for each in self.due[:]:
                self.due.remove(each)
                each()

    def end(self) -> None:
        for task in self.tasks:
            task.cancel()


async def test_tenants_have_equal_parts_however_many_connections_each_has() -> None:
    """By bytes: who moves few at a time has as many as who moves much."""
    moves = Moves()
    moves.begin("many", 100)
    moves.begin("few", 10)
    moves.begin("small", 100, LEAST_BYTES)
    await moves.turn(200)
    moves.end()

    most = max(moves.moved.values())
    assert all(moved > 0.8 * most for moved in moves.moved.values()), moves.moved


async def test_one_connection_is_served_as_fifty_are() -> None:
    """It comes again in the next turn, and what was left of this one is nobody's."""
    moves = Moves()
    moves.begin("many", 50)
    moves.begin("one", 1)
    await moves.turn(200)
    moves.end()

    assert moves.moved["one"] > 0.9 * moves.moved["many"] > 100 * PART_BYTES, moves.moved


async def test_one_that_is_at_its_sockets_for_a_turn_is_waited_for() -> None:
    """Others move one part in each, and do not have all that it leaves."""
    moves = Moves()
    moves.begin("many", 50)
    moves.begin("one", 1, away=2)
    await moves.turn(200)
    moves.end()

    assert moves.moved["one"] > 0.2 * moves.moved["many"], moves.moved


async def test_one_that_stays_away_holds_nobody_up() -> None:
    """After some turns the others have whole ones again."""
    moves = Moves()
    moves.begin("many", 50)
    moves.begin("one", 1)
    await moves.turn(5)
    moves.tasks.pop().cancel()
    await moves.turn(20)
    before = moves.moved.total()
    await moves.turn(10)
    moves.end()

    assert moves.moved.total() - before >= 9 * 16 * PART_BYTES


async def test_tenants_with_many_connections_use_a_whole_turn() -> None:
    """It ends early only where somebody has none left that waits."""
    moves = Moves()
    moves.begin("many", 50)
    moves.begin("others", 50)
    await moves.turn()
    before = moves.moved.total()
    await moves.turn(10)
    moves.end()

    assert moves.moved.total() - before == 10 * 16 * PART_BYTES


async def test_more_than_a_part_is_moved_as_one() -> None:
    """Nobody waits for ever."""
    moves = Moves(turn_bytes=PART_BYTES)
    moves.begin("one", 2, 9 * PART_BYTES)
    moves.begin("two", 2)
    await moves.turn(20)
    moves.end()

    assert moves.moved["one"] >= 3 * 9 * PART_BYTES
    assert moves.moved["two"] >= 3 * PART_BYTES


async def test_who_is_alone_waits_for_nobody() -> None:
    """It has all of a turn, and then the loop comes round."""
    moves = Moves()
    moves.begin("one", 1)
    await moves.turn()
    assert moves.moved["one"] > 0
    before = moves.moved["one"]
    await moves.turn(10)
    assert moves.moved["one"] - before >= 10 * PART_BYTES
    moves.end()


async def test_a_turn_is_bounded() -> None:
    """Whatever waits, no more is moved in one."""
    moves = Moves(turn_bytes=4 * PART_BYTES)
    moves.begin("one", 50)
    moves.begin("two", 50)
    await moves.turn()
    for _ in range(10):
        before = moves.moved.total()
        await moves.turn()
        assert moves.moved.total() - before <= 4 * PART_BYTES
    moves.end()


async def test_who_has_gone_takes_nobodys_turn() -> None:
    """And nothing is remembered of it."""
    moves = Moves(turn_bytes=PART_BYTES)
    moves.begin("gone", 20)
    await moves.turn()
    moves.end()
    moves.begin("here", 2)
    await moves.turn(5)
    assert moves.moved["here"] >= 3 * PART_BYTES
    moves.end()
    await moves.turn(5)

    assert not moves.turns._waiting
    assert not moves.turns._deficits


async def test_who_moves_next_to_nothing_pays_for_the_move() -> None:
    """Else single bytes would cost the processor most, and count for least."""
    moves = Moves(turn_bytes=4 * LEAST_BYTES)
    moves.begin("one", 100, 1)
    await moves.turn()
    before = moves.moved["one"]
    await moves.turn()

    assert moves.moved["one"] - before <= 4
    moves.end()
