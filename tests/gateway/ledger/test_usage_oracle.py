"""The ledger against an oracle: whatever happens to usage on its way, not a nanosecond and not a nano-dollar differs.

Containers of two tenants load, idle, drain, run calls alone and in batches, and lose them. Calls that raised or died
run again, in their container or in another of their version; streams keep a part of what they did and go on elsewhere,
where they repeat some of it. Clocks step; messages are late, repeated, in any order, of a kind that this release
cannot read yet, or of a state that only a later release knows; prices, the least that calls are billed, discounts and
the price of tokens change, and months are closed meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from pilotlight_core.bus import Undecodable
from pilotlight_core.model.devices import CHARGES
from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_core.model.units import COST_UNITS, cost_of
from pilotlight_gateway.ledger import unread_usage
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import receipt_line
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from pilotlight_gateway.ledger.usage_queries import usage_sums
from pilotlight_gateway.ledger.usage_report import cost_units
from tests.builders.nodes import binding
from tests.example_counts import SLOW, examples
from tests.gateway.ledger.usage_oracle import UsageOracle

SECOND = 10**9
BEGAN = int(datetime(2026, 9, 29, 20, tzinfo=UTC).timestamp())
PRICES = ("l4", "h100")
STEP = 1_800
"""Seconds by which wall clocks are wrong at most."""
NEW_STATE = "napping"
"""What a later release says of a state."""
SUBJECT = "usage.local.acme"
"""Of an agent before subjects named nodes: within their ranges, intervals are taken as they are."""


def nanoseconds(hours: int) -> st.SearchStrategy[int]:
    """Up to so many hours. (Where a range is wide, Hypothesis draws tiny numbers for the most part.)"""
    return st.builds(lambda s, ns: s * SECOND + ns, st.integers(0, hours * 3_600 - 1), st.integers(1, SECOND))


def nano_dollars(most: int) -> st.SearchStrategy[int]:
    """Up to so many dollars."""
    return st.integers(0, most * 1_000).map(lambda part: part * 999_983)


@dataclass
class Start:
    """Of a call in a container."""

    ns: int = 0
    """So far."""
    resumed: bool = False
    repeats: bool = False
    """It has yet to do again what its stream lost."""


@dataclass
class Place:
    """A container on a slice, with the calls that run."""

    number: int
    version: int
    tenant: str
    price: str
    ppm: int
    purpose: Purpose
    most: int
    boot: int
    """Nanoseconds of its boot clock so far."""
    skew: int
    """Nanoseconds by which its wall clock is wrong."""
    running: dict[str, Start] = field(default_factory=dict)
    used: bool = False


class LedgerMachine(RuleBasedStateMachine):
    """`new_ledger` is set by each test."""

    new_ledger: Callable[[], Ledger]
    least_ms = 0
    """For which a start is billed at first."""

    @initialize()
    def begin(self) -> None:
        self.ledger = self.new_ledger()
        book = self.ledger.book
        self.oracle = UsageOracle({price: [(0.0, book.rate(price), self.least_ms * 10**6)] for price in PRICES})
        for price in PRICES if self.least_ms else ():
            book.put(price, [DatedRate(nano_usd_per_hour=book.rate(price), minimum_ms=self.least_ms)])
        self.places: list[Place] = []
        self.wall, self.skew, self.events, self.calls, self.seq = BEGAN * SECOND, 0, 0, 0, 0
        self.waiting: list[UsageEvent] = []
        self.unknown: list[UsageEvent] = []
        """What waits in the ledger for a release that knows its states."""
        self.again: list[tuple[int, str, bool]] = []
        """(version, call, whether it goes on): calls that are to run once more."""
        self.twice: set[str] = set()
        """Versions with such calls, of now and of before."""
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
        number = len(self.places)
        self._bind(Place(number, number, tenant, price, ppm, purpose, most, boot=0, skew=self.skew))

    @rule(which=st.integers(0, 99))
    def start_another(self, which: int) -> None:
        """Of the same version, on a like slice of the same node."""
        of = self.places[which % len(self.places)]
        self._bind(replace(of, number=len(self.places), boot=of.boot, running={}, used=False))

    def _bind(self, place: Place) -> None:
        self.places.append(place)
        if place.most:
            container = f"c{place.number}"
            self.oracle.most[container] = place.most
            named = binding(container, f"ver_{place.version}", max_units={"prompt_tokens": place.most})
            self.ledger.fold("USAGE", self.seq, [self._delivery(Bound(binding=named), Sender.CONTROLLER)])
        self._meter(place, LeaseState.PROVISIONING, 3 * SECOND + 7)

    @rule(
        which=st.integers(0, 99), ns=nanoseconds(5),
        state=st.sampled_from([LeaseState.LOADING, LeaseState.IDLE, LeaseState.PARKED, LeaseState.DRAINING]),
    )  # fmt: skip
    def wait(self, which: int, state: LeaseState, ns: int) -> None:
        if not (place := self.places[which % len(self.places)]).running:
            self._meter(place, state, ns)

    @rule(
        which=st.integers(0, 99),
        turns=st.lists(st.tuples(
            st.integers(0, 3), nanoseconds(3),
            st.sampled_from(["", "ok", "raised", "cancelled", "died", "split", "lost"]),
        ), min_size=1, max_size=4),
    )  # fmt: skip
    def run(self, which: int, turns: list[tuple[int, int, str]]) -> None:
        """Intervals of one container, one after the other."""
        place = self.places[which % len(self.places)]
        for more, ns, ends in turns:
            self._run(place, more, ns, ends)

    def _run(self, place: Place, more: int, ns: int, ends: str) -> None:
        """Calls, some of which began before, share their time; then the first ends, or all do, by the platform."""
        for _ in range(more or not place.running):
            self._begin(place)
        place.used = True
        calls = list(place.running)
        lengths = [ns // len(calls) + (number < ns % len(calls)) for number in range(len(calls))]
        shares: list[CallShare] = []
        for number, (call, length) in enumerate(zip(calls, lengths, strict=True)):
            ended = ends if number == 0 or ends in ("died", "split", "lost") else ""
            shares += _shares_of(place, call, length, ended, len(calls))
            place.running[call].ns += length
        self._meter(place, LeaseState.BUSY, ns, tuple(shares))
        for call in {share.call_id for share in shares if share.ended and share.ended != "repeated"}:
            del place.running[call]
            if ends in ("raised", "died", "split", "lost"):
                self.again.append((place.version, call, ends == "lost"))
                self.twice.add(f"ver_{place.version}")
                if len(self.oracle.rates[place.price]) > 1 or self.oracle.parts_paid.get(place.tenant):
                    self._see_prices_apart()

    def _begin(self, place: Place) -> None:
        """A call, if one is to run again that one; a stream goes on there."""
        mine = [one for one in self.again if one[0] == place.version and one[1] not in place.running]
        if mine:
            self.again.remove(mine[0])
            _, call, resumed = mine[0]
        else:
            self.calls += 1
            call, resumed = f"call_{self.calls}", False
        place.running[call] = Start(resumed=resumed, repeats=resumed)

    def _see_prices_apart(self) -> None:
        """Receipts have starts of a call at one price together: around its change their usage comes in order."""
        if self.twice:
            self.learn()
            mine = [event for event in self.waiting if event.version in self.twice]
            self.waiting = [event for event in self.waiting if event.version not in self.twice]
            self._fold(sorted(mine, key=lambda event: event.t1))

    @rule(seconds=st.integers(-STEP, STEP))
    def step_clock(self, seconds: int) -> None:
        """The wall clocks of nodes are not the truth."""
        self.skew = seconds * SECOND
        for place in self.places:
            place.skew = self.skew

    @rule(
        price=st.sampled_from(PRICES), nano=nano_dollars(10), least_ms=st.sampled_from([0, 0, 100, 3_600_000]),
        later=st.integers(STEP + 1, 20_000),
    )  # fmt: skip
    def change_price(self, price: str, nano: int, least_ms: int, later: int) -> None:
        """From an instant on that no interval has reached."""
        self._see_prices_apart()
        starts = self.wall / SECOND + later
        rates = self.oracle.rates[price]
        if starts > rates[-1][0]:
            rates.append((starts, nano, least_ms * 10**6))
            self.ledger.book.put(price, [
                DatedRate(starts_at=at, nano_usd_per_hour=each, minimum_ms=least // 10**6) for at, each, least in rates
            ])  # fmt: skip

    @rule(
        which=st.sampled_from(["tenant.acme", "tenant.rival", "prompt_tokens"]), nano=nano_dollars(1),
        later=st.integers(STEP + 1, 20_000),
    )  # fmt: skip
    def change_discount_or_token(self, which: str, nano: int, later: int) -> None:
        self._see_prices_apart()
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

    @rule(count=st.integers(1, 4), repeat=st.booleans())
    def deliver_unknown_state(self, count: int, repeat: bool) -> None:
        """A message of a newer agent, of which this release can read nothing: it waits, perhaps more than once."""
        fresh, self.waiting = self.waiting[:count], self.waiting[count:]
        if fresh:
            self.unknown += fresh
            unread = Undecodable(_of_later_release(fresh), "unknown")
            for _ in range(1 + repeat):
                self.ledger.fold("USAGE", self.seq, [self._delivery(unread)])
            assert not any(each.is_read for each in self.ledger.unread(0, self.wall / SECOND))
            self._check_sums()

    @rule()
    def learn(self) -> None:
        """The next release knows the state."""
        if self.unknown:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(unread_usage, "decode", _decode_of_later_release)
                pages = self.ledger.unread(0, self.wall / SECOND)
            assert all(each.is_read for each in pages)
            self.ledger.fold_unread("USAGE", pages)
            assert self.ledger.unread_count().messages == 0
            self.oracle.add(self.unknown)
            self.sent += self.unknown
            self.unknown = []

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
            self.learn()
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
        end = BEGAN * SECOND + place.boot + place.skew
        self.waiting.append(UsageEvent(
            id=f"i.{place.number}.{self.events}", node="n1", device=f"d{place.number}", slice=f"d{place.number}",
            ppm=place.ppm, price=place.price, state=state, t0=place.boot - ns, t1=place.boot, ended_at=end / SECOND,
            wall_ns=end, tenant=place.tenant, app="shop", function="f", version=f"ver_{place.version}",
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
        pages = [each for each in self.ledger.unread(0, self.wall / SECOND) if each.is_read]
        self.ledger.fold_unread("USAGE", pages)
        self.oracle.add(events)


def _shares_of(place: Place, call: str, ns: int, ended: str, size: int) -> list[CallShare]:
    """What an agent says of a call's part of an interval, after which it `ended` so ("": it runs on)."""
    start = place.running[call]
    shares: list[CallShare] = []
    before = start.ns
    if start.repeats:
        shares.append(CallShare(call, place.tenant, ns // 3, "repeated", size, fault=Fault.PLATFORM, earlier=before))
        start.repeats, before, start.ns, ns = False, 0, -(ns // 3), ns - ns // 3
    total, resumed = before + ns, start.resumed
    if not ended:
        return [*shares, CallShare(call, place.tenant, ns, batch_size=size)]
    kept = total * (ns % 5) // 4 if ended == "lost" else 0
    if ended in ("died", "split") or (ended == "lost" and not kept):
        outcome = "split" if ended == "split" else "died"
        lost = CallShare(
            call,
            place.tenant,
            ns,
            outcome,
            size,
            fault=Fault.PLATFORM,
            earlier=before,
            moved=ended == "lost",
            resumed=resumed,
        )  # fmt: skip
        return [*shares, lost]
    if ended != "lost":
        fault = Fault.TENANT if ended == "raised" else Fault.NONE
        units = {"prompt_tokens": ns % 1_000}
        end = CallShare(call, place.tenant, ns, ended, size, fault=fault, units=units, earlier=before, resumed=resumed)
        return [*shares, end]
    of_kept = max(0, kept - before)
    parts = [(of_kept, kept - of_kept, Fault.NONE), (ns - of_kept, max(0, before - kept), Fault.PLATFORM)]
    return [*shares, *(
        CallShare(call, place.tenant, each, "died", size, fault=fault, earlier=earlier, moved=True, resumed=resumed)
        for each, earlier, fault in parts[: 1 + (kept < total)]
    )]  # fmt: skip


def _of_later_release(events: list[UsageEvent]) -> bytes:
    """A message that says `NEW_STATE` of the first interval, which this release refuses."""
    told = msgspec.msgpack.decode(encode(UsageBatch(events=tuple(events))))
    told["events"][0]["state"] = f"{NEW_STATE}-{events[0].state.value}"
    data = msgspec.msgpack.encode(told)
    with pytest.raises(msgspec.DecodeError, match=NEW_STATE):
        decode(data)
    return data


def _decode_of_later_release(data: bytes) -> Any:
    told = msgspec.msgpack.decode(data)
    told["events"][0]["state"] = told["events"][0]["state"].removeprefix(f"{NEW_STATE}-")
    return decode(msgspec.msgpack.encode(told))


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
def test_not_a_nanosecond_and_not_a_nano_dollar_differs(ledger_url: str, request: pytest.FixtureRequest) -> None:
    """In either database."""
    is_sqlite = ledger_url.startswith("sqlite")

    def new_ledger(_machine: LedgerMachine) -> Ledger:
        return Ledger("sqlite://" if is_sqlite else request.getfixturevalue("shared_database")(), load_prices())

    machine: Any = type("Machine", (LedgerMachine,), {"new_ledger": new_ledger})
    few = examples(
        150 if is_sqlite else 45, fewer=SLOW, stateful_step_count=25, deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )  # fmt: skip
    run_state_machine_as_test(machine, settings=few)
