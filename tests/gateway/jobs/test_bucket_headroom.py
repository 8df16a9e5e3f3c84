"""How full the bucket of jobs was a moment ago."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import BusTimeout
from pilotlight_gateway.jobs.bucket_headroom import LOOK_EVERY_S, MOST_FILLED, Headroom
from tests.gateway.world import Clock


async def test_what_is_left_is_for_those_that_are_there() -> None:
    """It is asked for once a second, at most, and nobody waits for the answer; without one the last one holds."""
    answers: list[float | BusTimeout] = [MOST_FILLED, BusTimeout("no answer"), 0.5]
    clock = Clock(0.0)

    async def ask() -> float:
        answer = answers.pop(0)
        if isinstance(answer, BusTimeout):
            raise answer
        return answer

    headroom = Headroom(ask, clock=clock)
    told = []
    for _ in range(4):
        told += [headroom.full, headroom.full]
        while headroom.looking:  # noqa: ASYNC110 - a task of its own
            await asyncio.sleep(0)
        told.append(headroom.full)
        clock.at += LOOK_EVERY_S if answers else 0.0

    assert told == [False, False, True, True, True, True, True, True, False, False, False, False]
    assert not answers
