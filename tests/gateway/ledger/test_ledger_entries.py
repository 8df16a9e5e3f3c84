"""Cutting at midnight and among calls is exact."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_core.model.devices import MINIMUM_PRICE
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.usage import CallShare, LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_core.model.units import cost_of, money
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import usage_of
from pilotlight_gateway.ledger.attribution import OPERATOR
from pilotlight_gateway.ledger.ledger_entries import NS_PER_HOUR, cut_at_hours, day_of, entries_of, lay_out
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, event

BOOK = load_prices()
NOON = int(MIDNIGHT) * SECOND + 43_200 * SECOND


@given(st.integers(0, 90 * NS_PER_HOUR), st.integers(0, 60 * NS_PER_HOUR))
def test_hours_sum_to_the_interval(offset: int, ns: int) -> None:
    """However long it is and wherever it ends, and in order."""
    hours = cut_at_hours(int(MIDNIGHT) * SECOND + offset, ns)

    assert sum(part for _, part in hours) == ns
    assert all(part <= NS_PER_HOUR for _, part in hours)
    assert [hour for hour, _ in hours] == sorted({hour for hour, _ in hours})


@given(st.lists(st.integers(0, 100), max_size=6), st.data())
def test_laying_out_keeps_both_sums(lengths: list[int], data: st.DataObject) -> None:
    """Every share keeps its size and every day its own; a call ends once, in its last part."""
    total = sum(lengths)
    cut = data.draw(st.integers(0, total))
    days = [("one", cut), ("two", total - cut)]
    shares = [CallShare(f"call{number}", "acme", ns, "ok", units={"n": 1}) for number, ns in enumerate(lengths)]

    parts = lay_out(days, shares)

    assert [(day, sum(share.ns for share in of_day)) for day, of_day in parts] == days
    laid_out = [share for _, of_day in parts for share in of_day]
    for share in shares:
        *first, last = [part for part in laid_out if part.call_id == share.call_id]
        assert sum(part.ns for part in [*first, last]) == share.ns
        assert last == replace(share, ns=last.ns)
        assert not any(part.ended or part.units for part in first)


def test_an_interval_over_midnight_is_two_days() -> None:
    """Three seconds that end one second after midnight are two and one."""
    entries = entries_of([event(1, 0, 3 * SECOND, ended_at=MIDNIGHT + 1.0)], BOOK)

    assert {key[0]: line.ns for key, line in entries.usage.items()} == {
        "2026-09-21": 2 * SECOND,
        "2026-09-22": SECOND,
    }


def test_a_batch_is_split_among_its_calls_and_ends_are_counted() -> None:
    """Each call has its own ns; a call counts where it ends."""
    entries = entries_of([busy(1, 0, ("a", 3, "ok"), ("b", 4, "")), busy(2, 7, ("b", 5, "raised"))], BOOK)

    (line,) = entries.usage.values()
    assert (line.ns, line.calls) == (12, 2)
    ns = Counter[str]()
    for _, call, part, *_ in entries.calls:
        ns[call] += part
    assert ns == {"a": 3, "b": 9}
    assert [(call, outcome, batch_size) for _, call, _, outcome, batch_size, *_ in entries.calls] == [
        ("a", "ok", 2), ("b", "", 2), ("b", "raised", 1),
    ]  # fmt: skip


def test_a_call_that_ended_without_time_is_still_counted() -> None:
    """A share of nothing is a share."""
    entries = entries_of([event(1, 5, 5, LeaseState.BUSY, shares=(CallShare("a", "acme", 0, "ok"),))], BOOK)

    assert [(line.ns, line.calls) for line in entries.usage.values()] == [(0, 1)]


def test_a_stream_that_moved_is_one_call() -> None:
    """Its lost container's part counts no call; what the next one repeats is the operator's; the least counts once."""
    book = load_prices()
    book.put("cpu", [DatedRate(nano_usd_per_hour=10**9, minimum_ms=1_000)])
    repeated = CallShare("a", "acme", 2, "repeated", fault=Fault.PLATFORM, resumed=True)
    parts = (
        CallShare("a", "acme", 3, "died", fault=Fault.TENANT, moved=True), repeated,
        CallShare("a", "acme", 4, "ok", resumed=True),
    )  # fmt: skip
    entries = entries_of([event(1, 0, 9, LeaseState.BUSY, shares=parts)], book)

    sums = {(line[1], line[6]): (found.ns, found.calls) for line, found in entries.usage.items()}
    assert sums[OPERATOR, "cpu"] == (2, 0)
    assert sums["acme", "cpu"] == (7, 1)
    assert sums["acme", MINIMUM_PRICE] == (SECOND - 3, 0)
    assert [row[3] for row in entries.calls if row[3]] == ["died", "repeated", "repeated", "ok"]


def test_a_price_that_nobody_knows_is_counted_and_not_free() -> None:
    """It must not stop the fold."""
    entries = entries_of([event(1, 0, 5, price="abacus")], BOOK)

    assert (entries.unpriced, entries.leases[0]["rate"]) == (1, BOOK.rate("gpu"))


def test_cores_and_memory_are_paid_for_beside_the_slice() -> None:
    """On the terms that the calls of an interval have in common; what is free leaves no row in the report."""
    book = load_prices()
    book.put("cpu_core", [DatedRate(nano_usd_per_hour=0)])
    entries = entries_of([busy(1, 0, ("a", 3, "ok"), ("b", 4, ""), core_ppm=2_000_000, gib_ppm=4_000_000)], book)

    ((terms, number),) = entries.terms.items()
    gib = 4_000_000, book.rate("memory_gib")
    assert (terms.price, terms.ppm, terms.rate) == ("cpu", 1_000_000, book.rate("cpu"))
    assert (terms.core_ppm, terms.core_rate, terms.gib_ppm, terms.gib_rate) == (0, 0, *gib)
    assert [(row[0], row[1], row[2]) for row in entries.calls] == [(number, "a", 3), (number, "b", 4)]
    assert {key[6]: (line.ns, line.calls) for key, line in entries.usage.items()} == {
        "cpu": (7, 1), "memory_gib": (7, 0),
    }  # fmt: skip
    (lease,) = entries.leases
    assert [lease[name] for name in ("core_ppm", "core_rate", "gib_ppm", "gib_rate")] == [2_000_000, 0, *gib]


def test_terms_are_alike_for_calls_that_have_all_in_common() -> None:
    """Whoever asked, with which key, is a part of them; so is the rate, and the day."""
    keys = (("acme", "key_1"), ("acme", "key_1"), ("acme", "key_2"), ("rival", "key_1"))
    shares = tuple(CallShare(f"c{number}", tenant, 5, "ok", key=key) for number, (tenant, key) in enumerate(keys))
    both = entries_of([event(1, 0, 20, LeaseState.BUSY, shares=shares)], BOOK)
    same = entries_of([event(2, 50, 70, LeaseState.BUSY, shares=shares)], BOOK)
    dearer = load_prices()
    dearer.put("cpu", [DatedRate(nano_usd_per_hour=7)])
    other = entries_of([event(1, 0, 20, LeaseState.BUSY, shares=shares)], dearer)

    numbers = [row[0] for row in both.calls]
    assert (len(set(numbers)), numbers[0]) == (3, numbers[1])
    assert same.terms == both.terms
    assert not set(other.terms.values()) & set(numbers)


def test_spot_costs_what_it_is_told_to() -> None:
    """A receipt that was told says the same."""
    more: dict[str, Any] = {"price": "h100", "purchase": "spot", "region": "eu", "gib_ppm": 4_000_000}
    entries = entries_of([busy(1, 0, ("a", SECOND, "ok"), **more)], BOOK)
    spent = Spent(ns=SECOND, ppm=1_000_000, price="h100", purchase="spot", gib_ppm=4_000_000)

    told = usage_of(CallResult(output=b"", spent=spent), BOOK)

    (terms,) = entries.terms
    assert terms.rate == BOOK.rate("h100") * 4 // 10
    assert [part.cost for part in told.parts] == [
        money(cost_of(SECOND, ppm, rate)) for ppm, rate in ((terms.ppm, terms.rate), (terms.gib_ppm, terms.gib_rate))
    ]


def test_days_are_utc() -> None:
    """Wherever the gateway stands."""
    assert day_of(NOON) == "2026-09-22"


def test_a_late_interval_has_the_rate_of_its_time() -> None:
    """However long after a new price it is folded."""
    book = load_prices()
    book.put("cpu", [DatedRate(starts_at=MIDNIGHT, nano_usd_per_hour=7)])

    before = entries_of([event(1, 0, SECOND, ended_at=MIDNIGHT - 1.0)], book)
    after = entries_of([event(2, 0, SECOND, ended_at=MIDNIGHT + 1.0)], book)

    assert [lease["rate"] for lease in before.leases + after.leases] == [load_prices().rate("cpu"), 7]


def test_a_call_of_a_class_with_hooks_counts_once() -> None:
    """At the end of its method, or of a first hook behind which nothing runs any more; each part has its line."""
    ran = [("Words~pre", "ok"), ("Words", "ok"), ("Words~post", "raised")]
    parts = [busy(n, 0, ("a", 3, how), function=name, version=f"v{n}") for n, (name, how) in enumerate(ran)]
    failed = busy(9, 0, ("b", 3, "raised"), function="Words~pre", version="v0")
    entries = entries_of([*parts, failed], BOOK)

    counted = Counter[str]()
    for key, line in entries.usage.items():
        counted[key[3]] += line.calls
    assert counted == {"Words~pre": 1, "Words": 1, "Words~post": 0}
    assert sorted(terms.function for terms in entries.terms) == ["Words", "Words~post", "Words~pre"]
