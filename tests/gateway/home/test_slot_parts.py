"""Spare slots of engines go to flows that hold less than their part."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.home.home import Home
from tests.builders.calls import call, credit
from tests.example_counts import examples

SLOTS, SPARE = 18, 2


class Engines:
    """One home and one container that takes more calls than it runs."""

    def __init__(self, slots: int = SLOTS, spare: int = SPARE) -> None:
        self.home = Home(gateway="gw1", epoch=1)
        self.running: dict[str, Grant] = {}
        self._numbers = 0
        self._credits = 0
        self.offer(slots, spare)

    def offer(self, slots: int, spare: int) -> None:
        """The container says how many slots it has."""
        self._credits += 1
        self.home.on_credit(credit("c1", self._credits, *self.running, slots=slots, spare=spare), 0.0)

    def ask(self, tenant: str, calls: int = 1, *, weight: float = 1.0, priority: Priority = Priority.STANDARD) -> int:
        """Calls come; returns how many of those that wait were granted."""
        for _ in range(calls):
            self._numbers += 1
            name = f"{tenant} {self._numbers}"
            self.home.enqueue(call(name, tenant, weight=weight, priority=priority, remaining_ms=1e9), 0.0)
        return self.grant()

    def grant(self) -> int:
        """Grant all that can be."""
        grants = self.home.grants(0.0)
        self.running.update({grant.call_id: grant for grant in grants})
        self.home.check_integrity()
        return len(grants)

    def end(self, tenant: str = "", calls: int = 1) -> None:
        """Calls end, of a tenant or of anybody, the oldest first, and others are granted after each."""
        for name in [each for each in self.running if each.startswith(tenant)][:calls]:
            grant = self.running.pop(name)
            self.home.done(name, grant.container, grant.grant_number, 0.0, cost=100.0)
            self.grant()

    def held(self) -> Counter[str]:
        """How many slots each tenant holds."""
        return Counter(name.partition(" ")[0] for name in self.running)


def test_a_flood_that_is_alone_leaves_the_spare_slots() -> None:
    """It has as many as the engine runs; who comes next waits for no answer's end."""
    engines = Engines()

    assert engines.ask("flood", 100) == SLOTS - SPARE
    assert engines.ask("other") == 1
    assert engines.ask("third") == 1
    assert engines.ask("fourth") == 0


def test_spare_slots_are_there_again_when_a_call_ends() -> None:
    """Whoever's: a flood beyond its part does not take them, and the next newcomer does."""
    engines = Engines()
    engines.ask("flood", 100)
    engines.ask("other", 2)
    engines.end("flood", 2)

    assert engines.held() == {"flood": SLOTS - SPARE - 2, "other": 2}
    assert engines.ask("third", 2) == 2


def test_two_floods_have_their_parts_and_a_third_tenant_has_room() -> None:
    """By weight, whoever came first."""
    engines = Engines()
    engines.ask("first", 100, weight=1.0)
    engines.ask("second", 100, weight=3.0)
    engines.end("first", 14)
    for _ in range(20):
        engines.end()

    assert SLOTS - SPARE <= engines.held().total() < SLOTS
    assert abs(engines.held()["second"] - 12) <= 1
    assert engines.ask("third") == 1


def test_a_tenants_own_batch_leaves_room_for_its_interactive_calls() -> None:
    """Parts are those of flows: a tenant's calls of one class."""
    engines = Engines()
    engines.ask("tenant", 100, priority=Priority.BATCH)

    assert engines.ask("tenant", 2, priority=Priority.INTERACTIVE) == 2


def test_what_an_engine_offers_while_calls_wait_in_it_is_for_newcomers() -> None:
    """Its agent offers what is held, and the spare slots."""
    engines = Engines()
    engines.ask("flood", 5)
    engines.offer(7, SPARE)

    assert engines.ask("flood", 10) == 0
    assert engines.ask("other") == 1


def test_where_no_slot_is_spare_all_are_for_everybody() -> None:
    """Functions without engines, and agents that know of no spare ones."""
    assert Engines(spare=0).ask("flood", 100) == SLOTS


def test_a_single_slot_is_for_everybody() -> None:
    """Or nobody would ever run."""
    assert Engines(slots=1, spare=1).ask("flood", 3) == 1


def test_a_call_that_finds_a_spare_slot_is_not_refused_for_those_that_wait() -> None:
    """However little time it has, and however long the others' queue is."""
    engines = Engines()
    engines.ask("flood", 100)
    engines.home.enqueue(call("other", "other", remaining_ms=50.0), 0.0)

    assert engines.grant() == 1


@examples(40)
@given(st.randoms(use_true_random=False), st.integers(2, 24), st.integers(0, 4))
def test_whoever_holds_nothing_gets_a_spare_slot_whatever_came_before(
    chance: random.Random, slots: int, spare: int
) -> None:
    """Tenants come and go; no slot is given twice, and none but spare ones is idle while calls wait."""
    engines = Engines(slots, spare)
    tenants = {name: chance.choice((0.5, 1.0, 4.0)) for name in "abcde"}
    for _ in range(60):
        if chance.random() < 0.5:
            name = chance.choice(list(tenants))
            engines.ask(name, chance.randint(1, 8), weight=tenants[name], priority=chance.choice(list(Priority)))
        else:
            engines.end(chance.choice(list(tenants)), chance.randint(1, 3))
        engines.grant()
        held = sum(engines.held().values())
        waiting = engines.home.statistics(0.0).queued

        assert held <= slots
        assert not waiting or held >= slots - min(spare, slots - 1)
        if held < slots:
            assert engines.ask(f"new{engines._numbers}") == 1
