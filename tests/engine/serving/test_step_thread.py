"""The thread of an engine: what is asked of it, and what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from pilotlight_engine.engine_port import EngineRefusal, EngineStats, GenRequest, Sampling
from pilotlight_engine.serving.step_thread import StepThread
from pilotlight_engine.serving.token_inbox import TokenInbox
from pilotlight_engine.serving.token_pace import PaceFigures
from pilotlight_engine.sim.sim_engine import SimEngine
from tests.waiting import until


class Told:
    """A thread with a simulated engine, and what it told."""

    def __init__(self) -> None:
        self.dead: list[str] = []
        self.stats: list[EngineStats] = []
        self.paces: list[PaceFigures] = []
        self.engine = SimEngine()
        self.thread = StepThread(self.engine, self.dead.append, self.on_stats)
        self.thread.start()

    def on_stats(self, stats: EngineStats, pace: PaceFigures) -> None:
        self.stats.append(stats)
        self.paces.append(pace)


@pytest.fixture
async def told() -> AsyncIterator[Told]:
    made = Told()
    yield made
    made.thread.close()


def request(**changes: Any) -> GenRequest:
    return GenRequest(**{"id": "a", "prompt_ids": (1, 2, 3), "max_new": 5, "sampling": Sampling(seed=1), **changes})


async def test_tokens_come_and_then_the_end(told: Told) -> None:
    inbox = TokenInbox()
    told.thread.admit(request(), inbox)
    await inbox.wait_end()

    assert len(inbox.take(100)) == 5
    assert inbox.cached == 0
    await until(lambda: bool(told.stats) and told.stats[-1].decode_tokens > 0)
    assert told.stats[-1].running == 0


async def test_a_refusal_comes_by_the_inbox(told: Told) -> None:
    inbox = TokenInbox()
    told.thread.admit(request(prompt_ids=(99_999,)), inbox)
    await inbox.wait_news()

    assert isinstance(inbox.refusal, EngineRefusal)
    assert inbox.is_over


async def test_what_is_run_between_steps_answers_or_raises(told: Told) -> None:
    assert await told.thread.run(lambda: told.engine.adapters()) == ()
    with pytest.raises(EngineRefusal):
        await told.thread.run(lambda: told.engine.embed([[]]))


async def test_whoever_stops_hears_what_it_took(told: Told) -> None:
    inbox = TokenInbox()
    told.thread.admit(request(max_new=3000), inbox)
    await inbox.wait_news()
    await told.thread.stop(inbox)

    assert inbox.is_over
    assert inbox.cached == 0
    await until(lambda: not told.engine.has_work())
    told.thread.abort(inbox)  # it has gone


async def test_a_lost_engine_is_told_once(told: Told) -> None:
    told.engine.dead = True
    told.thread.admit(request(), TokenInbox())
    await until(lambda: bool(told.dead))

    assert told.dead == ["the simulated device is lost"]


async def test_what_nobody_waits_for_any_more_is_not_run(told: Told) -> None:
    """And harms nobody."""
    asked = [asyncio.create_task(told.thread.run(told.engine.adapters)) for _ in range(2)]
    await asyncio.sleep(0)
    asked[0].cancel()

    assert await asked[1] == ()
    assert await told.thread.run(told.engine.adapters) == ()
    assert not told.dead


async def test_one_that_stops_while_it_leaves_has_its_end(told: Told) -> None:
    """It is not brought back."""
    inbox = TokenInbox()
    told.thread.admit(request(max_new=3000), inbox)
    await inbox.wait_news()
    inbox.is_leaving = True
    told.thread._ask(partial(told.thread._leave, inbox.engine_id))
    await told.thread.stop(inbox)

    assert inbox.is_over
    assert inbox.paused is None
    await until(lambda: not told.engine.has_work())


async def test_the_pace_of_tokens_is_told(told: Told) -> None:
    """From when a call came to its tokens, and between them."""
    inboxes = [TokenInbox() for _ in range(6)]
    for number, inbox in enumerate(inboxes):
        told.thread.admit(request(id=str(number), max_new=50), inbox)
    for inbox in inboxes:
        await inbox.wait_end()
    await until(lambda: bool(told.paces) and told.paces[-1].between_s > 0)

    assert told.paces[-1].first_s > 0
    assert told.paces[-1].waited_s == 0
