"""A window is added up of what all gateways tell, and says who told nothing."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages.seeing.tallies import JOBS
from pilotlight_gateway.events.level_burns import PAIRS, broken_by
from pilotlight_gateway.tally.sketch import count_of, quantile_of
from pilotlight_gateway.tally.tally_desk import MOST_QUESTIONS, OF_TENANT
from tests.gateway.tally.tallied_calls import MINUTE, end, fail, version
from tests.gateway.tally.tally_gateways import FN, SeveralGateways, load


async def test_what_two_gateways_saw_is_one_window() -> None:
    """Calls of both, versions apart, and the home that one of them is."""
    async with SeveralGateways() as world:
        for number in range(100):
            end(world.one.calls, version(), float(number + 1))
            end(world.two.calls, version(number=2), float(number + 101))
        fail(world.two.calls, version(), "queue_full")
        world.one.homes.note_sample([load()], world.clock())
        world.clock.pass_s(2)
        world.one.homes.note_sample(
            [load(queued=3, running=2, ready=1, busy=1, slots=2, oldest_ms=40.0)], world.clock()
        )

        window = await world.one.desk.window(FN)
        assert (window.tally.ended, window.tally.failures) == (200, {"queue_full": 1})
        assert quantile_of(window.tally.durations, 0.5) == pytest.approx(100.0, rel=0.02)
        assert {name[0]: count_of(part.durations) for name, part in window.by_version.items()} == {
            "ver_acme_fn_1": 100, "ver_acme_fn_2": 100
        }  # fmt: skip
        assert (window.home.queued_s, window.home.running_s, window.home.ready_s) == (6.0, 4.0, 2.0)
        assert (window.home.seen_s, window.home.busy_s, window.home.idle_credit_s) == (2.0, 2.0, 0.0)
        assert sorted(each.gateway for each in window.gateways) == ["one", "two"]
        assert window.silent == ()
        assert 600 <= window.seconds < 660


async def test_runs_of_jobs_are_told_beside_the_calls_and_in_none_of_their_numbers() -> None:
    """Of all gateways, by version, in lists and since they began; also of a function that has nothing but jobs."""
    async with SeveralGateways() as world:
        end(world.one.calls, version(), 10.0)
        for gateway in (world.one, world.two):
            end(gateway.jobs, version(), 90_000.0)
        fail(world.two.jobs, version(), "function_raised")
        end(world.two.jobs, version("nightly"))

        window = await world.one.desk.window(FN)
        assert (window.tally.ended, window.tally.durations.most) == (1, 10.0)
        assert (window.jobs.ended, window.jobs.failures) == (2, {"function_raised": 1})
        assert {name: part.ended for name, part in window.by_version.items()} == {
            ("ver_acme_fn_1", ""): 1, ("ver_acme_fn_1", JOBS): 2
        }  # fmt: skip
        alone = await world.one.desk.window("acme:app.nightly")
        assert (alone.tally.ended, alone.jobs.ended, [*alone.by_version]) == (0, 1, [("ver_acme_nightly_1", JOBS)])
        listed = (await world.one.desk.tenant("acme")).windows
        assert [(each.function, each.tally.ended, each.jobs.ended) for each in listed] == [
            (FN, 1, 2), ("acme:app.nightly", 0, 1)
        ]  # fmt: skip
        totals = [part for told in await world.one.desk.totals("acme") for part in told.parts if part.totals]
        assert sum(part.totals.ended for part in totals if part.arm == JOBS and part.totals) == 3
        assert sum(part.totals.ended for part in totals if not part.arm and part.totals) == 1


async def test_several_functions_are_one_short_question() -> None:
    """With their levels, without stages; who had no calls is left out."""
    async with SeveralGateways() as world:
        end(world.two.calls, version(p95_ms=5.0), 10.0)
        found = await world.one.desk.brief((FN, "acme:app.none"), 5)
        (window,) = found.windows
        assert (window.function, window.tally.bad, window.tally.stages) == (FN, {"unary": 1}, {})
        assert world.bus.asked == 1


async def test_a_level_that_is_missed_a_little_for_three_days_is_known_of_all_gateways() -> None:
    """8 % are late where 5 % may be: no shorter pair of windows says so."""
    async with SeveralGateways() as world:
        for _ in range(3 * 144 + 7):
            for gateway in (world.one, world.two):
                for number in range(12):
                    end(gateway.calls, version(p95_ms=50.0), 80.0 if number == 0 else 20.0)
                gateway.calls.fold()
            world.clock.pass_s(600.0)
        windows = {
            minutes: (await world.one.desk.brief((FN,), minutes)).of(FN).tally
            for pair in PAIRS for minutes in (pair.long, pair.short)
        }  # fmt: skip
        seen = windows[4_320]
        assert seen.good["unary"] + seen.bad["unary"] == pytest.approx(2 * 12 * 432, rel=0.02)
        assert seen.bad["unary"] == pytest.approx(2 * 432, rel=0.02)
        assert broken_by("unary", windows, windows) == PAIRS[-1]


async def test_a_series_has_every_step() -> None:
    """Also those in which nothing happened; together they are the window."""
    async with SeveralGateways() as world:
        for minute in range(6):
            for _ in range(minute % 3):
                end(world.two.calls, version())
            world.two.calls.fold()
            world.clock.pass_s(60)
        world.clock.pass_s(1)
        series = await world.one.desk.series(FN, 5, 1)
        window = await world.one.desk.window(FN, 5)
        assert [each.tally.ended for each in series] == [1, 2, 0, 1, 2, 0]
        assert sum(each.tally.ended for each in series) == window.tally.ended == 6
        assert all(after.since_ns - before.since_ns == MINUTE for before, after in pairwise(series))
        assert series[0].since_ns == window.since_ns
        assert series[-1].until_ns <= world.clock()


async def test_a_tenant_sees_its_own_functions_alone() -> None:
    """Those with the most calls first, in short."""
    async with SeveralGateways() as world:
        end(world.one.calls, version("few"))
        for _ in range(3):
            end(world.two.calls, version("many"))
        end(world.two.calls, version("theirs", tenant="other"))
        found = await world.one.desk.tenant("acme")
        assert [each.function for each in found.windows] == ["acme:app.many", "acme:app.few"]
        assert found.windows[0].tally.stages == {}
        assert found.windows[0].tally.samples == ()
        assert {each.function for each in (await world.one.desk.tenant("")).windows} == {
            "acme:app.many", "acme:app.few", "other:app.theirs"
        }  # fmt: skip


async def test_the_same_question_is_asked_once_a_second() -> None:
    async with SeveralGateways() as world:
        for _ in range(5):
            await world.one.desk.window(FN)
        assert world.bus.asked == 1
        world.one.at = 1.5
        await world.one.desk.window(FN)
        assert world.bus.asked == 2


async def test_too_many_questions_at_once_are_refused() -> None:
    async with SeveralGateways() as world:
        asking = [world.one.desk.window(f"t{number}:app.fn") for number in range(MOST_QUESTIONS + 1)]
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(each) for each in found if isinstance(each, Exception)] == [Unavailable]


async def test_one_tenant_takes_no_others_turn() -> None:
    """Windows of other lengths are other questions, each of which adds everything up."""
    async with SeveralGateways() as world:
        desk = world.one.desk
        asking = [desk.tenant("acme", minutes) for minutes in range(1, MOST_QUESTIONS)]
        found = await asyncio.gather(*asking, desk.window("other:app.fn"), return_exceptions=True)
        assert [type(each) for each in found[OF_TENANT:-1]] == [Unavailable] * (MOST_QUESTIONS - 1 - OF_TENANT)
        assert not any(isinstance(each, Exception) for each in (*found[:OF_TENANT], found[-1]))
        await desk.tenant("acme", 30)


async def test_totals_are_each_gateways_own_since_it_began() -> None:
    async with SeveralGateways() as world:
        for gateway, calls in ((world.one, 2), (world.two, 3)):
            for number in range(calls):
                end(gateway.calls, version(number=number % 2), 10.0)
        told = await world.one.desk.totals("acme")
        assert {answer.own.gateway: [part.totals.ended for part in answer.parts if part.totals] for answer in told} == {
            "one": [2], "two": [3]
        }  # fmt: skip
