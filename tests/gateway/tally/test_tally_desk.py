"""A window is added up of what all gateways tell, and says who told nothing."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.messages import wire
from pilotlight_core.model.messages.seeing.tallies import AskTallies, TalliesTold
from pilotlight_gateway.home.home_report import VersionLoad
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.sketch import count_of, quantile_of
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources
from pilotlight_gateway.tally.tally_desk import MOST_QUESTIONS, TallyDesk
from pilotlight_gateway.tally.tally_exchange import BusPeers
from tests.gateway.tally.tallied_calls import MINUTE, WallClock, end, fail, version

FN = "acme:app.fn"


class Subscribed:
    """A subscription that a test forgets."""

    async def unsubscribe(self) -> None:
        """It is heard no more."""


class TallyBus:
    """Carries questions between gateways as bytes; those in `silent` answer nothing."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}
        self.replies: dict[str, asyncio.Future[Any]] = {}
        self.silent: set[str] = set()
        self.asked = 0

    async def subscribe(self, subject: str, handler: Any) -> Any:
        self.handlers[subject] = handler
        return Subscribed()

    async def request(self, subject: str, message: Any, timeout: float) -> Any:
        self.asked += 1
        if subject in self.silent:
            raise BusTimeout("nobody answers")
        reply, answer = f"reply{self.asked}", asyncio.get_running_loop().create_future()
        self.replies[reply] = answer
        self.handlers[subject](subject, wire.decode(wire.encode(message)), reply)
        return await answer

    async def publish(self, subject: str, message: Any) -> None:
        self.replies[subject].set_result(wire.decode(wire.encode(message)))

    def spawn(self, job: Any) -> Any:
        return asyncio.ensure_future(job)


class TalliedGateway:
    """One of several gateways."""

    def __init__(self, name: str, bus: TallyBus, clock: WallClock, names: list[str]) -> None:
        self.calls, self.homes = Tallies(clock), HomeTallies()
        own = GatewayTallies(name, wall=clock, worked=lambda: 0.0)
        sources = TallySources(calls=self.calls, homes=self.homes, own=own, wall=clock)
        answers = TallyAnswers(sources)
        others = [each for each in names if each != name]
        self.peers = BusPeers(bus, answers, lambda: others, region="local", gateway=name)
        self.at = 0.0
        self.desk = TallyDesk(answers, self.peers, clock=lambda: self.at, wall=clock)


class SeveralGateways:
    """Two, over one bus."""

    def __init__(self) -> None:
        self.bus, self.clock = TallyBus(), WallClock()
        names = ["one", "two"]
        self.one, self.two = (TalliedGateway(name, self.bus, self.clock, names) for name in names)

    async def __aenter__(self) -> SeveralGateways:
        for each in (self.one, self.two):
            await each.peers.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in (self.one, self.two):
            await each.peers.__aexit__()


def load(**more: Any) -> VersionLoad:
    fields: dict[str, Any] = {
        "function": FN, "version": "ver_acme_fn_1", "queued": 0, "running": 0, "ready": 0, "starting": 0, "busy": 0,
        "slots": 0, "is_short": False, "has_room": False, "oldest_ms": 0.0,
    }  # fmt: skip
    return VersionLoad(**fields | more)


async def test_what_two_gateways_saw_is_one_window() -> None:
    """Calls of both, versions apart, and the home that one of them is."""
    async with SeveralGateways() as world:
        for number in range(100):
            end(world.one.calls, version(), float(number + 1))
            end(world.two.calls, version(number=2), float(number + 101))
        fail(world.two.calls, version(), "queue_full")
        world.one.homes.sample([load()], world.clock())
        world.clock.pass_s(2)
        world.one.homes.sample([load(queued=3, running=2, ready=1, busy=1, slots=2, oldest_ms=40.0)], world.clock())

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


async def test_a_gateway_that_does_not_answer_is_named() -> None:
    async with SeveralGateways() as world:
        end(world.one.calls, version())
        end(world.two.calls, version())
        world.bus.silent.add(subjects.tallies("local", "two"))
        window = await world.one.desk.window(FN)
        assert (window.tally.ended, window.silent) == (1, ("two",))


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
        asking = [world.one.desk.window(f"acme:app.f{number}") for number in range(MOST_QUESTIONS + 1)]
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert [type(each) for each in found if isinstance(each, Exception)] == [Unavailable]


async def test_totals_are_each_gateways_own_since_it_began() -> None:
    async with SeveralGateways() as world:
        for gateway, calls in ((world.one, 2), (world.two, 3)):
            for number in range(calls):
                end(gateway.calls, version(number=number % 2), 10.0)
        told = await world.one.desk.totals("acme")
        assert {answer.own.gateway: [part.totals.ended for part in answer.parts if part.totals] for answer in told} == {
            "one": [2], "two": [3]
        }  # fmt: skip


async def test_an_answer_fits_into_a_message_of_the_bus() -> None:
    """What has no room is counted: the functions with the fewest calls."""
    world = SeveralGateways()
    for number in range(500):
        one = version(f"f{number}")
        for at in range(1, 40):
            end(world.one.calls, one, 1.13**at)
    told = await TallyAnswers(
        TallySources(
            calls=world.one.calls, homes=world.one.homes, own=GatewayTallies("one", wall=world.clock), wall=world.clock
        )
    ).told(AskTallies(tenant="acme"))
    assert isinstance(told, TalliesTold)
    assert len(wire.encode(told)) < 1_000_000
    assert len(told.parts) + told.left_out == 500
    assert told.left_out > 0
