"""How full the bucket of jobs was a moment ago."""

from __future__ import annotations

from structlog.testing import capture_logs

from pilotlight_core.bus import BusTimeout
from pilotlight_gateway.jobs.bucket_headroom import LOOK_EVERY_S, MOST_FILLED, Headroom
from tests.gateway.world import Clock
from tests.waiting import until


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
        await until(lambda: not headroom.looking)
        told.append(headroom.full)
        clock.at += LOOK_EVERY_S if answers else 0.0

    assert told == [False, False, True, True, True, True, True, True, False, False, False, False]
    assert not answers


async def test_a_question_that_fails_in_an_unforeseen_way_is_logged_and_asked_again() -> None:
    """What was known before holds meanwhile."""
    answers: list[float | ZeroDivisionError] = [MOST_FILLED, ZeroDivisionError("a bug"), 0.5]
    clock = Clock(0.0)

    async def ask() -> float:
        answer = answers.pop(0)
        if isinstance(answer, ZeroDivisionError):
            raise answer
        return answer

    headroom, known = Headroom(ask, clock=clock), []
    with capture_logs() as lines:
        while answers:
            known.append(headroom.full)
            await until(lambda: not headroom.looking)
            clock.at += LOOK_EVERY_S
        known.append(headroom.full)

    assert known == [False, True, True, False]
    assert [line["exc_info"] for line in lines] == [True]
