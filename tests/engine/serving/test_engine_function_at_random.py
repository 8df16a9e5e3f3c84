"""Calls that are read slowly, cancelled, and stopped by their text, at any moment: nothing of them stays."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from pilotlight import Sim
from pilotlight_core.model.messages.call_messages import Outcome
from tests.engine.serving.engine_guest import EngineGuest, engine_guest
from tests.waiting import until

CALLS = 150
TOGETHER = 12


@pytest.mark.variant
async def test_after_hundreds_of_calls_nothing_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither keys and values, nor inboxes; and whoever read all has what it would have had alone."""
    monkeypatch.setattr("pilotlight_engine.serving.step_thread.MOST_UNREAD", 6)
    monkeypatch.setattr("pilotlight_engine.serving.step_thread.FEW_UNREAD", 2)
    chance, texts, read = random.Random(3), dict[int, str](), 0
    async with engine_guest(Sim(max_sequences=8, kv_bytes="1MiB", max_sequence=256)) as guest:
        turns = asyncio.Semaphore(TOGETHER)

        async def one(number: int) -> None:
            nonlocal read
            async with turns:
                seed = number % 5
                text = await _call(guest, f"call_{number}", seed, chance)
                if text is not None:
                    read += 1
                    assert texts.setdefault(seed, text) == text

        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for number in range(CALLS):
                group.create_task(one(number))
        await until(lambda: not guest.engine.has_work())
        thread = guest.function._thread
        await until(lambda: not thread._left_behind)
        assert thread._inboxes == {}
        assert guest.engine.stats().kv_used == 0
        assert guest.engine.scheduler.blocks.available == guest.engine.scheduler.blocks.blocks
        guest.engine.scheduler.blocks.check_integrity()
    assert len(texts) == 5
    assert read > CALLS // 4


async def _call(guest: EngineGuest, name: str, seed: int, chance: random.Random) -> str | None:
    """The text of a call; None if it was cancelled, or stopped by its text."""
    more: dict[str, Any] = {"stop": ["ba"]} if chance.random() < 0.3 else {}
    call, task = guest.begin(name, window=2, prompt="Once " * 4, max_tokens=40, seed=seed, ignore_eos=True, **more)
    await asyncio.sleep(0)  # it begins
    cancels = chance.random() < 0.4
    for turn in range(10_000):
        if task.done():
            break
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if cancels and chance.random() < 0.1:
            guest.cancel(name)
        elif chance.random() < 0.5:
            guest.read(call, name, len(call.chunks))
        if turn % 4 == 3:
            await asyncio.sleep(chance.choice((0, 0.002)))  # or all that is done is to look
    await task
    assert call.result is not None
    assert call.result.outcome in (Outcome.OK, Outcome.CANCELLED)
    return call.text if call.result.outcome is Outcome.OK and not more else None
