"""Setting, changing and removing limits gives no tenant a second burst, whatever homes are lost meanwhile."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_core.model.messages.limiting import LimitAsk, LimitVerdict
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_home import LimitHome
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.tenant_limits import set_limits
from tests.example_counts import examples

FUNCTION = "acme:shop.hello"
SHARD = 7
TICK = 1 / 1024
STEPS = 80
CHOICES = (
    NO_LIMITS,
    *(Limits(requests_per_s=rate, burst=burst) for rate in (0.5, 3.0, 64.0) for burst in (1.0, 4.0, 30.0)),
    *(Limits(cost_per_s=rate, cost_burst=burst) for rate in (1.0, 40.0) for burst in (2.0, 60.0)),
    Limits(requests_per_s=10.0, burst=20.0, cost_per_s=50.0, cost_burst=10.0),
)


class Taken(NamedTuple):
    """What was taken while it was limited."""

    units: Fraction
    back: Fraction
    """What had come back by then, since the beginning."""
    period: int
    """Of the limits that held."""


class Meter:
    """One rate of one scope, seen from outside: what came back, the bursts that held, and what was taken."""

    def __init__(self) -> None:
        self.rate, self.since, self.back = Fraction(0), 0, Fraction(0)
        self.bursts: list[Fraction] = [Fraction(0)]
        self.limited = False
        self.taken: list[Taken] = []

    def change(self, rate: float | None, burst: float, ticks: int) -> None:
        """Another limit; while there is none, what was taken comes back by the last one."""
        self.back, self.since = self.back_at(ticks), ticks
        self.limited = rate is not None
        if rate is not None:
            self.rate = Fraction(rate)
            self.bursts.append(Fraction(burst))

    def back_at(self, ticks: int) -> Fraction:
        return self.back + self.rate * Fraction(ticks - self.since, 1024)

    def take(self, units: float, ticks: int) -> None:
        """Over every window that ends now: taken <= the largest burst that held in it, and what came back."""
        if not self.limited:
            return
        now = self.back_at(ticks)
        self.taken.append(Taken(Fraction(units), now, len(self.bursts) - 1))
        total, burst, period = Fraction(0), Fraction(0), len(self.bursts)
        for taken in reversed(self.taken):
            while period > taken.period:
                period -= 1
                burst = max(burst, self.bursts[period])
            total += taken.units
            assert total <= burst + now - taken.back


class Operator:
    """Sets limits of a tenant and of its calls to one function, while calls come and homes die or move."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.registry = MemoryRegistry()
        self.registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="enterprise")
        self.policies = LimitPolicies(self.registry.limits)
        self.ticks, self.epoch, self.number, self.granted = 0, 1, 0, 0
        self.meters = {scope: (Meter(), Meter()) for scope in (None, FUNCTION)}
        self.home = LimitHome(self.policies)
        self.home.begin(SHARD, self.epoch, self.at, ())

    @property
    def at(self) -> float:
        return self.ticks * TICK

    def step(self) -> None:
        """Something happens."""
        steps = (self.ask, self.wait, self.set, self.kill_home, self.move_home, self.sweep)
        self.random.choices(steps, weights=(8, 5, 5, 1, 1, 3))[0]()

    def ask(self) -> None:
        """Until it is refused, or often enough."""
        for _ in range(40):
            self.number += 1
            cost = self.random.choice((1, 7, 100))
            answer = self.home.ask(SHARD, "g1", LimitAsk(self.number, "acme", FUNCTION, cost), self.at)
            if answer.verdict is not LimitVerdict.GRANTED:
                return
            self.granted += 1
            for requests, costs in self.meters.values():
                requests.take(1.0, self.ticks)
                costs.take(answer.charged, self.ticks)

    def wait(self) -> None:
        """Time goes on."""
        self.ticks += self.random.choice((1, 100, 1024, 3000, 40_000))

    def set(self) -> None:
        """Set other limits, or none; the gateway that writes them may not know the present home yet."""
        function, limits = self.random.choice((None, FUNCTION)), self.random.choice(CHOICES)
        heard = self.epoch - self.random.choice((0, 0, 1))
        at_once(set_limits(self.registry, "acme", limits, function, home=heard))
        self.home.limits_changed(SHARD, "acme", self.at)
        requests, costs = self.meters[function]
        requests.change(limits.requests_per_s, limits.request_burst, self.ticks)
        costs.change(limits.cost_per_s, limits.spending_burst, self.ticks)

    def kill_home(self) -> None:
        """Nothing of it is left."""
        self.succeed(NOTHING)

    def move_home(self) -> None:
        """It hands over what it knows."""
        self.succeed(self.home.end(SHARD, self.at))

    def succeed(self, state: LimitState) -> None:
        """The next home."""
        self.ticks += self.random.choice((0, 100))
        self.epoch += 1
        self.home = LimitHome(self.policies)
        self.home.begin(SHARD, self.epoch, self.at, (), state)

    def sweep(self) -> None:
        """Idle accounts are forgotten."""
        self.home.sweep(SHARD, self.at)


def at_once(work: Coroutine[Any, Any, None]) -> None:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waits")


@examples(150)
@given(seed=st.integers(0, 2**32))
def test_no_change_of_limits_gives_more_than_the_bound(seed: int) -> None:
    """The bound is checked at every grant, over all windows that end there."""
    world = Operator(seed)
    for _ in range(STEPS):
        world.step()

    assert world.granted or world.number == 0 or world.home.statistics().refused


def test_a_burst_that_was_just_set_is_available() -> None:
    """It does not matter how young the home is, or whether a smaller limit came before."""
    world = Operator(0)
    registry, home = world.registry, world.home
    for burst, expected in ((20.0, 20), (50.0, 30)):
        at_once(set_limits(registry, "acme", Limits(requests_per_s=0.1, burst=burst), home=world.epoch))
        home.limits_changed(SHARD, "acme", world.at)
        asks = [home.ask(SHARD, "g1", LimitAsk(number, "acme", FUNCTION), world.at) for number in range(100)]
        assert [ask.verdict for ask in asks].count(LimitVerdict.GRANTED) == expected
