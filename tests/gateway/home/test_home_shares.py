"""Shares of tenants over minutes of virtual time, with simulated containers and callers."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from benchmarks.fairness import MICE, SIZES_MS, SLOTS, jain, share_error
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_gateway.home.home import Home
from tests.builders.calls import call, credit
from tests.variants import with_variants

OUTSTANDING = 40
WARM_S = 10.0
BACK_S = 0.002
"""Between an answer and the caller's next call."""


@dataclass
class Platform:
    """One home and one container of 64 slots; each tenant keeps its calls waiting or running."""

    weights: Mapping[str, float]
    seed: int
    home: Home = field(default_factory=lambda: Home(gateway="gw1", epoch=1))
    ran: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    """Tenant -> from when to when each of its calls ran."""

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, str, str]] = []
        self._began: dict[str, float] = {}
        self._cost: dict[str, float] = {}
        """Running call -> what the container's meter stood at when it began."""
        self._meter = self._at = 0.0
        self._say(0.0, "heartbeat", "")

    def come(self, tenant: str, at: float) -> None:
        """The tenant begins to call."""
        for _ in range(OUTSTANDING):
            self._say(at + self._chance.uniform(0.0, 0.05), "call", tenant)

    def run(self, until: float) -> None:
        """Let the time pass."""
        while self._events[0][0] < until:
            at, _, what, who = heapq.heappop(self._events)
            if self._cost:  # an interval's cost is shared by those that ran in it
                self._meter += (at - self._at) * 1000.0 / len(self._cost)
            self._at = at
            if what == "heartbeat":
                self.home.on_credit(credit("c1", int(at) + 1, *self._cost, slots=SLOTS), at)
                self._say(at + 1.0, "heartbeat", "")
            elif what == "call":
                name = f"{who} {next(self._numbers)}"
                self.home.enqueue(call(name, who, weight=self.weights[who], cost=0.0), at)
            else:
                self._end(who, at)
            self._grant(at)

    def served(self, begins: float, until: float) -> dict[str, float]:
        """Slot-seconds of each tenant between two instants."""
        return {
            tenant: sum(max(0.0, min(to, until) - max(came, begins)) for came, to in ran)
            for tenant, ran in self.ran.items()
        }

    def _grant(self, at: float) -> None:
        assert self.home.expire(at) == []
        for grant in self.home.grants(at):
            self._began[grant.call_id], self._cost[grant.call_id] = at, self._meter
            self._say(at + self._chance.choice(SIZES_MS) / 1000.0, "end", grant.call_id)
        self.home.demand(at)

    def _end(self, name: str, at: float) -> None:
        self.home.done(name, "c1", 1, at, cost=self._meter - self._cost.pop(name), outcome=Outcome.OK)
        tenant = name.split()[0]
        self.ran[tenant].append((self._began.pop(name), at))
        self._say(at + BACK_S, "call", tenant)

    def _say(self, at: float, what: str, who: str) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), what, who))


@pytest.mark.parametrize("seed", with_variants(range(3), 1))
def test_weights_are_shares_within_three_percent_of_a_minute(seed: int) -> None:
    """Nine tenants of weights 1:2:4 have calls of 20 ms to 2 s; over less time single calls weigh more than 3%."""
    weights = {name: float(2 ** (number % 3)) for number, name in enumerate(MICE)}
    platform = Platform(weights, seed)
    for name in weights:
        platform.come(name, 0.0)
    platform.run(WARM_S + 64.0)  # the longest call of the minute has ended then
    shares = platform.served(WARM_S, WARM_S + 60.0)

    assert share_error(shares, weights) <= 0.03
    assert sum(shares.values()) >= 0.98 * SLOTS * 60.0


@pytest.mark.parametrize("seed", with_variants(range(3), 1))
def test_a_tenant_that_comes_late_has_its_share_within_a_second(seed: int) -> None:
    """It gets no more than that in the long run, as unused service is not saved up."""
    weights = dict.fromkeys((*MICE, "late"), 1.0)
    platform = Platform(weights, seed)
    for name in MICE:
        platform.come(name, 0.0)
    platform.come("late", WARM_S)
    platform.run(WARM_S + 44.0)

    first_second = platform.served(WARM_S + 1.0, WARM_S + 1.5)
    assert first_second["late"] >= 0.9 * SLOTS * 0.5 / len(weights)
    assert jain(list(platform.served(WARM_S, WARM_S + 40.0).values())) >= 0.99
