"""Tokens that wait for one call."""

from __future__ import annotations

import asyncio

from pilotlight_engine.engine_port import Finished, SequenceUsage, TokenOut
from pilotlight_engine.serving.token_inbox import TokenInbox

DONE = Finished(id="a", reason="stop", usage=SequenceUsage(prompt_tokens=1, completion_tokens=2, cached_tokens=0))


async def test_it_wakes_whoever_waits_for_tokens() -> None:
    inbox = TokenInbox()
    waiting = asyncio.get_running_loop().create_task(inbox.wait_news())
    await asyncio.sleep(0)
    assert not waiting.done()
    inbox.add(TokenOut(id="a", index=0, token=7))
    await waiting

    assert [one.token for one in inbox.take(5)] == [7]
    assert inbox.take(5) == []


async def test_tokens_come_before_the_end() -> None:
    inbox = TokenInbox()
    for index in range(3):
        inbox.add(TokenOut(id="a", index=index, token=index))
    inbox.add(DONE)
    await inbox.wait_end()

    assert inbox.is_over
    assert [one.token for one in inbox.take(2)] == [0, 1]
    assert [one.token for one in inbox.take(2)] == [2]
