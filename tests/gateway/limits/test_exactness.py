"""The bound holds over any interleaving of asks, ends, lost messages, and losses of homes and gateways."""

from __future__ import annotations

import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.messages.limiting import HeldPermits, Holdings, LimitAsk, LimitEnd, LimitVerdict
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_home import LimitHome
from pilotlight_gateway.limits.limits_state import NOTHING, LimitState
from tests.example_counts import examples

FUNCTION = "acme:shop.hello"
SHARD = 7
GATEWAYS = ("g1", "g2", "g3")
TICK = 1 / 1024
"""Instants are multiples of it, which floats hold exactly: the bounds are checked without tolerance."""
STEPS = 120
RATES = st.sampled_from([0.5, 1, 2.5, 3, 10, 64])
REQUESTS = st.builds(Limits, requests_per_s=RATES, burst=st.integers(1, 6))
COSTS = st.builds(Limits, cost_per_s=RATES, cost_burst=st.integers(1, 60))
RUNNING = st.builds(Limits, concurrency=st.integers(1, 6))
ALL = st.builds(lambda a, b, c: a.over(b).over(c), REQUESTS, COSTS, RUNNING)
LIMITS = st.one_of(REQUESTS, COSTS, RUNNING, ALL)


class SeveralGateways:
    """Three gateways with more calls than are allowed, and a home that is lost with all it knows."""

    def __init__(self, tenant: Limits, function: Limits, seed: int) -> None:
        self.random = random.Random(seed)
        self.limits = (tenant, function)
        policy = policy_of(EffectiveLimits(tenant=tenant, function=function), FUNCTION)
        self.policies = lambda *_: policy
        self.ticks, self.epoch, self.number = 0, 1, 0
        self.running: dict[str, set[int]] = {gateway: set() for gateway in GATEWAYS}
        self.granted: list[tuple[int, float]] = []
        """(ticks, cost as counted)"""
        self.home = LimitHome(self.policies)
        self.home.begin(SHARD, self.epoch, -1000.0, ())

    @property
    def at(self) -> float:
        return self.ticks * TICK

    def step(self) -> None:
        """Something happens."""
        often = (self.ask, self.wait, self.end)
        rarely = (self.report, self.kill_gateway, self.kill_home, self.move_home, self.sweep)
        steps = self.random.choices((*often, *rarely), weights=(8, 4, 6, 1, 0.3, 1, 1, 1))
        steps[0](self.random.choice(GATEWAYS))

    def ask(self, gateway: str) -> None:
        """Ask until refused. The call of a lost answer does not run, and `report` frees its permit."""
        verdict = LimitVerdict.GRANTED
        while verdict is LimitVerdict.GRANTED:
            self.number += 1
            cost = self.random.choice((1, 7, 100))
            answer = self.home.ask(SHARD, gateway, LimitAsk(self.number, "acme", FUNCTION, cost), self.at)
            verdict = answer.verdict
            if verdict is LimitVerdict.GRANTED:
                self.granted.append((self.ticks, answer.charged))
                if self.random.random() < 0.9:
                    self.running[gateway].add(self.number)
                self.check()

    def wait(self, _: str) -> None:
        """Time goes on."""
        self.ticks += self.random.choice((1, 100, 1024, 3000))

    def end(self, gateway: str) -> None:
        """End a call; the message to the home may be lost."""
        if self.running[gateway]:
            number = self.running[gateway].pop()
            if self.random.random() < 0.8:
                self.home.ended(SHARD, gateway, LimitEnd(number, "acme", FUNCTION, self.random.choice((0, 5))), self.at)

    def report(self, gateway: str) -> None:
        """Report the running calls."""
        held = (HeldPermits("acme", FUNCTION, tuple(self.running[gateway])),)
        told = Holdings(gateway=gateway, shard=SHARD, epoch=self.epoch, upto=self.number, held=held)
        self.home.on_holdings(told, self.at)

    def kill_gateway(self, gateway: str) -> None:
        """Its calls die with it."""
        self.running[gateway].clear()
        self.home.gateway_gone(gateway)

    def kill_home(self, silent: str) -> None:
        """Lose the home. The next one begins later, with the reports of all gateways or all but one."""
        self.succeed(silent, NOTHING)

    def move_home(self, silent: str) -> None:
        """It hands over what it knows of buckets."""
        self.succeed(silent, self.home.end(SHARD, self.at))

    def succeed(self, silent: str, state: LimitState) -> None:
        """The next home."""
        self.ticks += self.random.choice((0, 100))
        self.epoch += 1
        self.home = LimitHome(self.policies)
        self.home.begin(SHARD, self.epoch, self.at, GATEWAYS, state)
        for gateway in GATEWAYS:
            self.ask(gateway)
            if gateway != silent or self.random.random() < 0.5:
                self.report(gateway)

    def sweep(self, _: str) -> None:
        """Idle accounts are forgotten."""
        self.home.sweep(SHARD, self.at)

    def rest(self) -> None:
        """Everything ends, and buckets fill: then something is let in, however unlucky it was before."""
        for gateway in GATEWAYS:
            self.running[gateway].clear()
            self.report(gateway)
        self.ticks += 2**20
        self.ask(GATEWAYS[0])

    def check(self) -> None:
        """Over every window w that ends now: granted <= burst + rate · w; and never too many at once."""
        calls, cost = 0, Fraction(0)
        for ticks, charged in reversed(self.granted):
            calls, cost = calls + 1, cost + Fraction(charged)
            width = Fraction(self.ticks - ticks, 1024)
            for limits in self.limits:
                if limits.requests_per_s is not None:
                    assert calls <= limits.request_burst + Fraction(limits.requests_per_s) * width
                if limits.cost_per_s is not None:
                    assert cost <= limits.spending_burst + Fraction(limits.cost_per_s) * width
        for limits in self.limits:
            if limits.concurrency is not None:
                assert sum(map(len, self.running.values())) <= limits.concurrency
        self.home.check_integrity()


@examples(80)
@given(tenant=LIMITS, function=st.one_of(st.just(NO_LIMITS), LIMITS), seed=st.integers(0, 2**32))
def test_no_interleaving_grants_more_than_the_bound(tenant: Limits, function: Limits, seed: int) -> None:
    """The bound is checked at every grant, over all windows that end there."""
    world = SeveralGateways(tenant, function, seed)
    for _ in range(STEPS):
        world.step()

    world.rest()
    assert world.granted
