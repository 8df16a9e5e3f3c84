"""Several gateways over a real bus: one is the home, and no loss of a gateway lets too many calls in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import TooMuch, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import LimitAnswer, LimitAnswers, LimitVerdict
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.limits.limit_admission import Admission
from pilotlight_gateway.limits.limit_driver import RETRY_S
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limiter import HomeLimiter
from pilotlight_gateway.limits.silent_homes import LEASE_S, PATIENCE_S, TAKEOVER_S

FUNCTION = "acme:shop.hello"


class Fleet:
    """Gateways of one region that share limits and, in memory, a view of who lives and who is the home."""

    def __init__(self, url: str, limits: Limits) -> None:
        self.url = url
        self.region = f"r{token(8)}"
        self.policy = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), FUNCTION)
        self.at, self.step = 1000.0, 0.0
        self.home: ShardOwner | None = None
        self.gateways: dict[str, tuple[HomeLimiter, MemoryShardOwnership, AsyncExitStack, Bus]] = {}

    def clock(self) -> float:
        """Monotonic seconds: by `step` further with every look."""
        self.at += self.step
        return self.at

    async def add(self, name: str) -> None:
        """One more gateway."""
        stack = AsyncExitStack()
        bus = await stack.enter_async_context(connect(self.url, name=name))
        ownership = MemoryShardOwnership(gateway=name)
        limiter = HomeLimiter(
            bus, ownership, lambda *_: self.policy, region=self.region, gateway=name, clock=self.clock
        )
        await stack.enter_async_context(limiter)
        await bus.flush()
        self.gateways[name] = limiter, ownership, stack, bus
        self.announce()

    async def kill(self, name: str) -> None:
        """End it; the others learn of it by `announce`."""
        await self.gateways.pop(name)[2].aclose()

    def announce(self, home: ShardOwner | None = None) -> None:
        """Set the live gateways and the home for all."""
        self.home = home or self.home
        for _, ownership, _, _ in self.gateways.values():
            ownership.home, ownership.alive = self.home, set(self.gateways)
        for limiter, _, _, _ in list(self.gateways.values()):
            limiter.driver.refresh()

    async def admit(self, name: str, cost: float = 0.0) -> Admission:
        """A call at one gateway."""
        return await self.gateways[name][0].admit("acme", FUNCTION, self.policy, cost)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for it, for as long as a test may take."""
        async with asyncio.timeout(30):
            while not condition():
                for _, _, _, bus in self.gateways.values():
                    await bus.flush()


@asynccontextmanager
async def fleet_of(url: str, limits: Limits, *names: str) -> AsyncIterator[Fleet]:
    """Gateways of which the first is the home, its buckets full."""
    fleet = Fleet(url, limits)
    for name in names:
        await fleet.add(name)
    fleet.announce(ShardOwner(names[0], 5))
    await fleet.until(lambda: not fleet.gateways[names[0]][0].statistics().settling)
    fleet.at += 1000.0
    try:
        yield fleet
    finally:
        for name in list(fleet.gateways):
            await fleet.kill(name)


def is_refused(admission: Admission) -> bool:
    """Whether a limit was reached."""
    return isinstance(admission.error, TooMuch)


async def test_all_gateways_share_one_bucket(server_url: str) -> None:
    """Asked from everywhere at once, exactly the burst is granted, and each answer has what is left."""
    async with fleet_of(server_url, Limits(requests_per_s=1.0, burst=5.0), "g1", "g2", "g3") as fleet:
        admissions = await asyncio.gather(*(fleet.admit(name) for name in ("g1", "g2", "g3") * 4))

        granted = [admission for admission in admissions if admission.error is None]
        assert (len(granted), sum(map(is_refused, admissions))) == (5, 7)
        last = await fleet.admit("g2")
        assert isinstance(last.error, TooMuch)
        assert (last.error.retry_after, last.error.more["violated-policies"]) == (1.0, ["requests"])
        assert dict(last.headers())[b"ratelimit"] == b'"requests";r=0;t=1'


async def test_calls_of_one_turn_are_one_message(server_url: str) -> None:
    """Twenty calls at once take one message each way."""
    async with fleet_of(server_url, Limits(requests_per_s=1.0, burst=50.0), "g1", "g2") as fleet:
        bus = fleet.gateways["g2"][3]
        before = bus.statistics()
        await asyncio.gather(*(fleet.admit("g2") for _ in range(20)))

        assert bus.statistics().messages_out - before.messages_out == 1
        assert bus.statistics().messages_in - before.messages_in == 1


async def test_what_a_call_cost_is_counted_at_the_home(server_url: str) -> None:
    """The call may run at another gateway, and an end that is reported twice counts once."""
    async with fleet_of(server_url, Limits(cost_per_s=10.0, cost_burst=100.0), "g1", "g2") as fleet:
        call = await fleet.admit("g2", cost=10.0)
        call.end(100.0)
        call.end(100.0)

        refused = await fleet.admit("g2", cost=10.0)
        assert isinstance(refused.error, TooMuch)
        assert refused.error.retry_after == 1.0


async def test_a_permit_comes_back_when_its_call_ends_or_its_gateway_is_gone(server_url: str) -> None:
    """Over all gateways no more calls run than allowed."""
    async with fleet_of(server_url, Limits(concurrency=2), "g1", "g2", "g3") as fleet:
        first, second = await fleet.admit("g2"), await fleet.admit("g3")
        assert is_refused(await fleet.admit("g1"))

        first.end(None)
        third = await fleet.admit("g2")
        assert (third.error, is_refused(await fleet.admit("g2"))) == (None, True)

        await fleet.kill("g3")
        fleet.announce()
        assert (await fleet.admit("g1")).error is None
        second.end(None)


async def test_a_limit_that_is_set_while_a_call_asks_leaves_no_permit_behind(server_url: str) -> None:
    """The gateway asked by the old policy and the home counted by the new one; the end frees what was counted."""
    async with fleet_of(server_url, Limits(requests_per_s=100.0), "g1", "g2") as fleet:
        before = fleet.policy
        limits = Limits(requests_per_s=100.0, concurrency=1)
        fleet.policy = policy_of(EffectiveLimits(tenant=limits, function=NO_LIMITS), FUNCTION)
        home = fleet.gateways["g1"][0]
        for name in ("g1", "g2"):
            call = await fleet.gateways[name][0].admit("acme", FUNCTION, before, 0.0)
            assert (call.error, home.statistics().permits) == (None, 1)
            assert is_refused(await fleet.admit(name))

            call.end(None)
            await fleet.until(lambda: home.statistics().permits == 0)


async def test_a_report_of_a_lost_gateway_is_forgotten(server_url: str) -> None:
    """A gateway without a lease reports its permits and is lost: they come back nevertheless."""
    async with fleet_of(server_url, Limits(concurrency=1), "g1", "g2") as fleet:
        home = fleet.gateways["g1"][0]
        await fleet.admit("g2")
        fleet.gateways["g1"][1].alive = {"g1"}
        home.driver.refresh()
        assert home.statistics().permits == 0

        fleet.gateways["g2"][0].driver._report_all_holdings()
        await fleet.until(lambda: home.statistics().permits == 1)
        home.driver.refresh()
        assert home.statistics().permits == 0


async def test_a_new_home_counts_what_runs_everywhere_before_it_lets_more_in(server_url: str) -> None:
    """The former home is lost with all it knew, and the other gateways report their permits to the next one."""
    async with fleet_of(server_url, Limits(concurrency=3), "g1", "g2", "g3") as fleet:
        held = [await fleet.admit(name) for name in ("g2", "g3", "g1")]
        assert is_refused(await fleet.admit("g2"))

        await fleet.kill("g1")
        fleet.announce(ShardOwner("g2", 9))
        fleet.step = RETRY_S / 25

        again = [await fleet.admit(name) for name in ("g3", "g2")]
        assert [admission.error is None for admission in again] == [True, False]
        held[1].end(None)
        assert (await fleet.admit("g3")).error is None


async def test_a_new_home_begins_with_an_empty_bucket(server_url: str) -> None:
    """What the lost home may have granted counts as granted."""
    async with fleet_of(server_url, Limits(requests_per_s=2.0, burst=5.0), "g1", "g2", "g3") as fleet:
        assert (await fleet.admit("g3")).error is None
        await fleet.kill("g1")
        fleet.announce(ShardOwner("g2", 9))

        assert is_refused(await fleet.admit("g3"))
        fleet.at += 0.5
        assert (await fleet.admit("g3")).error is None
        assert is_refused(await fleet.admit("g2"))


async def test_a_shard_that_moves_keeps_its_buckets_and_asks_for_reports(server_url: str) -> None:
    """The home hands over in order: what was left is available, and running calls are counted."""
    limits = Limits(requests_per_s=0.001, burst=5.0, concurrency=2)
    async with fleet_of(server_url, limits, "g1", "g2") as fleet:
        fleet.at += 1e6
        held = await fleet.admit("g1")
        shard = subjects.shard_of("acme")
        fleet.gateways["g1"][1].home = None
        state = fleet.gateways["g1"][0].driver.end(shard)
        fleet.gateways["g2"][1].home = ShardOwner("g2", 9)
        new = fleet.gateways["g2"][0]
        new.driver.begin(shard, 9, state)
        fleet.announce(ShardOwner("g2", 9))
        await fleet.until(lambda: not new.statistics().settling)

        second = await fleet.admit("g1")
        assert dict(second.headers())[b"ratelimit"] == b'"requests";r=3;t=1000,"concurrency";r=0'
        assert is_refused(await fleet.admit("g2"))
        held.end(None)


async def test_without_a_home_nothing_is_let_in(server_url: str) -> None:
    """The home's process is gone: 503, with the rest of its lease as Retry-After."""
    async with fleet_of(server_url, Limits(requests_per_s=100.0), "g1", "g2") as fleet:
        await fleet.kill("g1")
        fleet.step = PATIENCE_S / 8

        first = await fleet.admit("g2")
        since, fleet.at = fleet.at, fleet.at + 2.0
        later = await fleet.admit("g2")

        assert isinstance(first.error, Unavailable)
        assert first.error.retry_after == pytest.approx(LEASE_S + TAKEOVER_S, abs=PATIENCE_S * 2)
        assert isinstance(later.error, Unavailable)
        assert later.error.retry_after == pytest.approx(LEASE_S + TAKEOVER_S - (fleet.at - since), abs=PATIENCE_S * 2)


async def test_a_home_that_is_silent_is_waited_for_until_its_lease_is_gone(server_url: str) -> None:
    """Its process is there and does not answer, so no other home can begin before its lease has ended."""
    async with fleet_of(server_url, Limits(requests_per_s=100.0), "g1", "g2") as fleet:
        await fleet.gateways["g1"][3].subscribe(subjects.limits(fleet.region, "silent"), lambda *_: None)
        await fleet.gateways["g1"][3].flush()
        fleet.gateways["g2"][1].home = ShardOwner("silent", 9)
        fleet.step = PATIENCE_S / 8

        refused = await fleet.admit("g2")

        assert isinstance(refused.error, Unavailable)
        assert refused.error.retry_after == pytest.approx(LEASE_S + TAKEOVER_S, abs=PATIENCE_S * 2)


async def test_a_home_whose_lease_lapsed_lets_nothing_in(server_url: str) -> None:
    """Another gateway may hold the lease; when it holds again, nothing is forgotten."""
    async with fleet_of(server_url, Limits(concurrency=1), "g1") as fleet:
        limiter, ownership, _, _ = fleet.gateways["g1"]
        held = await fleet.admit("g1")
        ownership.lease_holds = False
        limiter.driver.refresh()

        fleet.step = PATIENCE_S / 8
        assert isinstance((await fleet.admit("g1")).error, Unavailable)

        ownership.lease_holds = True
        assert is_refused(await fleet.admit("g1"))
        held.end(None)
        assert (await fleet.admit("g1")).error is None


async def test_a_lost_answer_costs_no_permit(server_url: str) -> None:
    """The permit of a caller that leaves while it is counted is given back by the next report."""
    async with fleet_of(server_url, Limits(concurrency=1), "g1", "g2") as fleet:
        home, asker = fleet.gateways["g1"][0], fleet.gateways["g2"][0]
        task = asyncio.create_task(fleet.admit("g2"))
        await asyncio.sleep(0)
        task.cancel()
        await fleet.until(lambda: home.statistics().permits == 1)

        asker.driver._report_all_holdings()
        await fleet.until(lambda: home.statistics().permits == 0)
        assert (await fleet.admit("g2")).error is None


async def test_a_caller_that_leaves_as_its_answer_comes_holds_no_permit(server_url: str) -> None:
    """Its task is cancelled and has not run since: a report gives the permit back, and other answers arrive."""
    async with fleet_of(server_url, Limits(concurrency=2), "g1", "g2") as fleet:
        home, asker = fleet.gateways["g1"][0], fleet.gateways["g2"][0]
        leaving, staying = asyncio.create_task(fleet.admit("g2")), asyncio.create_task(fleet.admit("g2"))
        await asyncio.sleep(0)
        numbers = list(asker.driver._asked)
        answers = tuple(LimitAnswer(number, LimitVerdict.GRANTED, epoch=5, holds=True) for number in numbers)
        leaving.cancel()
        asker.driver._on_answers("", LimitAnswers(gateway="g1", answers=answers), "")

        stayed = await staying
        assert stayed.answer is not None
        assert stayed.answer.number == numbers[1]
        assert [number for held in asker.driver._held.values() for number in held] == [numbers[1]]
        await fleet.until(lambda: home.statistics().permits == 2)
        asker.driver._report_all_holdings()
        await fleet.until(lambda: home.statistics().permits == 1)


async def test_the_answer_of_a_home_that_was_succeeded_is_void(server_url: str) -> None:
    """Its successor has the report and does not count that call, so it is asked again."""
    async with fleet_of(server_url, Limits(concurrency=1), "g1", "g2") as fleet:
        asker = fleet.gateways["g2"][0]
        asker.driver._reported = dict.fromkeys(range(64), 6)
        task = asyncio.create_task(fleet.admit("g2"))
        await fleet.until(lambda: fleet.gateways["g1"][0].statistics().permits == 1)
        fleet.announce(ShardOwner("g2", 7))
        fleet.step = RETRY_S / 25

        assert (await task).error is None
        assert asker.statistics().permits == 1


async def test_a_gateway_that_is_not_the_home_does_not_decide(server_url: str) -> None:
    """A gateway with an old view asks again until its view is new."""
    async with fleet_of(server_url, Limits(requests_per_s=10.0), "g1", "g2", "g3") as fleet:
        fleet.gateways["g3"][1].home = ShardOwner("g2", 9)
        task = asyncio.create_task(fleet.admit("g3"))
        await fleet.until(lambda: fleet.gateways["g3"][3].statistics().messages_in > 0)
        fleet.announce(ShardOwner("g1", 5))

        answer = (await task).answer
        assert answer is not None
        assert (answer.verdict, answer.epoch) == (LimitVerdict.GRANTED, 5)
