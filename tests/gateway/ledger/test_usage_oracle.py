"""The ledger against an oracle: whatever happens to usage on its way, not a nanosecond and not a nano-dollar differs.

Containers of two tenants load, idle, run calls alone and in batches, and lose them; clocks step; messages are late,
repeated, in any order, or of a kind that this release cannot read yet; prices, the least that calls are billed,
discounts and the price of tokens change, and months are closed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from pilotlight_core.bus import Undecodable
from pilotlight_core.model.devices import CHARGES
from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.messages.wire import encode
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_core.model.units import COST_UNITS, cost_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import receipt_line
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from pilotlight_gateway.ledger.usage_queries import usage_sums
from pilotlight_gateway.ledger.usage_report import cost_units
from tests.builders.nodes import binding
from tests.example_counts import SLOW, judged
from tests.gateway.ledger.usage_oracle import UsageOracle

SECOND = 10**9
BEGAN = int(datetime(2026, 9, 29, 20, tzinfo=UTC).timestamp())
PRICES = ("l4", "h100")
SUBJECT = "usage.local.acme"
"""Of an agent before subjects named nodes: within their ranges, intervals are taken as they are."""


def nanoseconds(hours: int) -> st.SearchStrategy[int]:
    """Up to so many hours. (Where a range is wide, Hypothesis draws tiny numbers for the most part.)"""
    return st.builds(lambda s, ns: s * SECOND + ns, st.integers(0, hours * 3_600 - 1), st.integers(1, SECOND))


def nano_dollars(most: int) -> st.SearchStrategy[int]:
    """Up to so many dollars."""
    return st.integers(0, most * 1_000).map(lambda part: part * 999_983)


@dataclass
class Place:
    """A container on a slice, with the calls that run."""

    number: int
    tenant: str
    price: str
    ppm: int
    purpose: Purpose
    boot: int
    """Nanoseconds of its boot clock so far."""
    running: dict[str, int] = field(default_factory=dict)
    """Call -> nanoseconds so far."""
    used: bool = False


class LedgerMachine(RuleBasedStateMachine):
    """`new_ledger` is set by each test."""

    new_ledger: Callable[[], Ledger]

    @initialize()
    def begin(self) -> None:
        self.ledger = self.new_ledger()
        book = self.ledger.book
        self.oracle = UsageOracle({price: [(0.0, book.rate(price), 0)] for price in PRICES})
        self.places: list[Place] = []
        self.wall, self.skew, self.events, self.calls, self.seq = BEGAN * SECOND, 0, 0, 0, 0
        self.waiting: list[UsageEvent] = []
        self.sent: list[UsageEvent] = []
        self.closed: tuple[str, list[tuple[Any, ...]]] = "", []
        """The first day that is not closed, and the sums of those before it."""
        self.start("acme", "h100", 142_857, Purpose.CALL, 500)

    @rule(
        tenant=st.sampled_from(["acme", "rival"]), price=st.sampled_from(PRICES),
        ppm=st.sampled_from([1_000_000, 142_857, 62_500]),
        purpose=st.sampled_from([Purpose.CALL, Purpose.PREWARM, Purpose.FLOOR]), most=st.sampled_from([0, 500, 10**6]),
    )  # fmt: skip
    def start(self, tenant: str, price: str, ppm: int, purpose: Purpose, most: int) -> None:
        place = Place(len(self.places), tenant, price, ppm, purpose, boot=0)
        self.places.append(place)
        if most:
            container = f"c{place.number}"
            self.oracle.most[container] = most
            named = binding(container, f"ver_{place.number}", max_units={"prompt_tokens": most})
            self.ledger.fold("USAGE", self.seq, [self._delivery(Bound(binding=named), Sender.CONTROLLER)])
        self._meter(place, LeaseState.PROVISIONING, 3 * SECOND + 7)

    @rule(
        which=st.integers(0, 99), state=st.sampled_from([LeaseState.LOADING, LeaseState.IDLE, LeaseState.PARKED]),
        ns=nanoseconds(5),
    )  # fmt: skip
    def wait(self, which: int, state: LeaseState, ns: int) -> None:
        if not (place := self.places[which % len(self.places)]).running:
            self._meter(place, state, ns)

    @rule(
        which=st.integers(0, 99),
        turns=st.lists(st.tuples(
            st.integers(0, 3), nanoseconds(3), st.sampled_from(["", "ok", "raised", "cancelled", "died"])
        ), min_size=1, max_size=4),
    )  # fmt: skip
    def run(self, which: int, turns: list[tuple[int, int, str]]) -> None:
        """Intervals of one container, one after the other."""
        place = self.places[which % len(self.places)]
        for more, ns, ends in turns:
            self._run(place, more, ns, ends)

    def _run(self, place: Place, more: int, ns: int, ends: str) -> None:
        """Calls, some of which began before, share their time; then the first ends, or the platform ends all."""
        for _ in range(more or not place.running):
            self.calls += 1
            place.running[f"call_{self.calls}"] = 0
        place.used = True
        calls = list(place.running)
        lengths = [ns // len(calls) + (number < ns % len(calls)) for number in range(len(calls))]
        shares = []
        for number, (call, length) in enumerate(zip(calls, lengths, strict=True)):
            ended = ends if ends == "died" or number == 0 else ""
            earlier, units = (place.running[call], {"prompt_tokens": ns % 1_000}) if ended else (0, {})
            fault = Fault.PLATFORM if ended == "died" else Fault.NONE
            shares.append(CallShare(
                call, place.tenant, length, ended, len(calls), fault=fault, earlier=earlier, units=units
            ))  # fmt: skip
            place.running[call] += length
            if ended:
                del place.running[call]
        self._meter(place, LeaseState.BUSY, ns, tuple(shares))

    @rule(seconds=st.integers(-1_800, 1_800))
    def step_clock(self, seconds: int) -> None:
        """The wall clocks of nodes are not the truth."""
        self.skew = seconds * SECOND

    @rule(
        price=st.sampled_from(PRICES), nano=nano_dollars(10), least_ms=st.sampled_from([0, 0, 100, 3_600_000]),
        later=st.integers(1_801, 20_000),
    )  # fmt: skip
    def change_price(self, price: str, nano: int, least_ms: int, later: int) -> None:
        """From an instant on that no interval has reached."""
        starts = self.wall / SECOND + later
        rates = self.oracle.rates[price]
        if starts > rates[-1][0]:
            rates.append((starts, nano, least_ms * 10**6))
            self.ledger.book.put(price, [
                DatedRate(starts_at=at, nano_usd_per_hour=each, minimum_ms=least // 10**6) for at, each, least in rates
            ])  # fmt: skip

    @rule(
        which=st.sampled_from(["tenant.acme", "tenant.rival", "prompt_tokens"]), nano=nano_dollars(1),
        later=st.integers(1_801, 20_000),
    )  # fmt: skip
    def change_discount_or_token(self, which: str, nano: int, later: int) -> None:
        starts = self.wall / SECOND + later
        tenant = which.partition(".")[2]
        rates = self.oracle.parts_paid.setdefault(tenant, []) if tenant else self.oracle.token
        if not rates or starts > rates[-1][0]:
            rates.append((starts, nano))
            self.ledger.book.put(which, [DatedRate(starts_at=at, nano_usd_per_hour=each) for at, each in rates])

    @rule(days=st.integers(0, 1))
    def close(self, days: int) -> None:
        day = datetime.fromtimestamp(self.wall // SECOND, UTC).date() - timedelta(days=days)
        self.ledger.close_days(day.isoformat(), self.wall / SECOND)
        if (until := day.isoformat()) > self.closed[0]:
            self.closed = until, self._paid_before(until)

    @rule(chance=st.randoms(use_true_random=False), unreadable=st.booleans())
    def deliver(self, chance: Any, unreadable: bool) -> None:
        """Some of what waits, in any order, with some that came before; perhaps unreadable until later."""
        chance.shuffle(self.waiting)
        count = chance.randint(0, len(self.waiting))
        fresh, self.waiting = self.waiting[:count], self.waiting[count:]
        again = chance.sample(self.sent, min(len(self.sent), 3))
        if unreadable:
            self._fold_unread(fresh)
        self._fold([*fresh, *again])
        self._check_sums()

    def _check_sums(self) -> None:
        """Nothing is lost or made, of all payers together."""
        found = list(usage_sums(self.ledger, None, "2026-01-01", "2028-01-01", ("tenant",)))
        timed = sum(row["ns"] for row in found if row["price"] not in CHARGES)
        assert timed == sum(ns for _, _, ns, _ in self.oracle.parts())

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        try:
            self._fold(self.waiting)
            self._compare()
        finally:
            self.ledger.close()

    def _paid_before(self, day: str) -> list[tuple[Any, ...]]:
        """The ledger's sums of closed days, which nothing changes any more."""
        found = usage_sums(self.ledger, None, "2026-01-01", day, ("day", "tenant", "state"))
        return sorted(tuple(row.values()) for row in found)

    def _compare(self) -> None:
        if self.closed[0]:
            assert self._paid_before(self.closed[0]) == self.closed[1]
        paid: dict[str, tuple[int, Fraction]] = {}
        for row in usage_sums(self.ledger, None, "2026-01-01", "2028-01-01", ("tenant",)):
            ns, cost = paid.get(row["tenant"], (0, Fraction(0)))
            paid[row["tenant"]] = ns + row["ns"], cost + Fraction(cost_units(row), COST_UNITS)
        assert {payer: sums for payer, sums in paid.items() if any(sums)} == self.oracle.by_payer()
        receipts: dict[tuple[str, str], tuple[int, Fraction]] = {}
        for line in self.ledger.read(sa.select(receipt_line).where(receipt_line.c.tenant != "")):
            ns, cost = receipts.get((line["tenant"], line["call"]), (0, Fraction(0)))
            more = cost_of(line["ns"], line["ppm"], line["rate"], line["discount"])
            receipts[line["tenant"], line["call"]] = ns + line["ns"], cost + more
        assert {which: sums for which, sums in receipts.items() if any(sums)} == self.oracle.by_call()
        assert self.ledger.quarantine(node=None, before=None, limit=1) == []
        found = verify(self.ledger, "2026-01-01", "2028-01-01")
        assert found.discrepancy is None, found

    def _meter(self, place: Place, state: LeaseState, ns: int, shares: tuple[CallShare, ...] = ()) -> None:
        self.events += 1
        place.boot += ns
        self.wall = max(self.wall, BEGAN * SECOND + place.boot)
        end = BEGAN * SECOND + place.boot + self.skew
        self.waiting.append(UsageEvent(
            id=f"i.{place.number}.{self.events}", node="n1", device=f"d{place.number}", slice=f"d{place.number}",
            ppm=place.ppm, price=place.price, state=state, t0=place.boot - ns, t1=place.boot, ended_at=end / SECOND,
            wall_ns=end, tenant=place.tenant, app="shop", function="f", version=f"ver_{place.number}",
            container=f"c{place.number}", shares=shares, purpose=place.purpose, used=place.used,
        ))  # fmt: skip

    def _delivery(self, message: Any, sender: Sender = Sender.BEFORE_NODES) -> UsageDelivery:
        self.seq += 1
        at = self.wall / SECOND
        return UsageDelivery(seq=self.seq, at=at, sender=sender, node="n1", message=message, subject=SUBJECT)

    def _fold(self, events: list[UsageEvent]) -> None:
        self.ledger.fold("USAGE", self.seq, [self._delivery(UsageBatch(events=(event,))) for event in events])
        self.oracle.add(events)
        self.sent += events

    def _fold_unread(self, events: list[UsageEvent]) -> None:
        """This release learns to read them, and the stream delivers them once more."""
        unread = Undecodable(encode(UsageBatch(events=tuple(events))), "a kind of later")
        self.ledger.fold("USAGE", self.seq, [self._delivery(unread)])
        self.ledger.fold_unread("USAGE", self.ledger.unread(0, self.wall / SECOND))
        self.oracle.add(events)


@pytest.mark.timeout(600)
def test_not_a_nanosecond_and_not_a_nano_dollar_differs(ledger_url: str, request: pytest.FixtureRequest) -> None:
    """In either database."""
    is_sqlite = ledger_url.startswith("sqlite")

    def new_ledger(_machine: LedgerMachine) -> Ledger:
        return Ledger("sqlite://" if is_sqlite else request.getfixturevalue("shared_database")(), load_prices())

    machine: Any = type("Machine", (LedgerMachine,), {"new_ledger": new_ledger})
    few = settings(
        max_examples=judged(150 if is_sqlite else 45, SLOW), stateful_step_count=25, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=few)
