"""Cutting at midnight and among calls is exact."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.usage import CallShare, LeaseState
from pilotlight_core.model.price_book import DatedRate, load_prices
from pilotlight_gateway.ledger.ledger_entries import NS_PER_DAY, cut_at_midnights, day_of, entries_of, lay_out
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, event

BOOK = load_prices()
NOON = int(MIDNIGHT) * SECOND + 43_200 * SECOND


@given(st.integers(0, 3 * NS_PER_DAY), st.integers(0, 3 * NS_PER_DAY))
def test_days_sum_to_the_interval(offset: int, ns: int) -> None:
    """However long it is and wherever it ends, and in order."""
    days = cut_at_midnights(int(MIDNIGHT) * SECOND + offset, ns)

    assert sum(part for _, part in days) == ns
    assert all(part <= NS_PER_DAY for _, part in days)
    assert [day for day, _ in days] == sorted({day for day, _ in days})


@given(st.lists(st.integers(0, 100), max_size=6), st.data())
def test_laying_out_keeps_both_sums(shares: list[int], data: st.DataObject) -> None:
    """Every share keeps its size and every day its own."""
    total = sum(shares)
    cut = data.draw(st.integers(0, total))
    days = [("one", cut), ("two", total - cut)]

    parts = list(lay_out(days, shares))

    assert [sum(ns for _, ns in part) for part in parts] == shares
    for day, size in days:
        assert sum(ns for part in parts for name, ns in part if name == day) == size


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
    receipts = {key[1]: (sum_.ns, sum_.outcome, sum_.batch_size) for key, sum_ in entries.calls.items()}
    assert receipts == {"a": (3, "ok", 2), "b": (9, "raised", 2)}


def test_a_call_that_ended_without_time_is_still_counted() -> None:
    """A share of nothing is a share."""
    entries = entries_of([event(1, 5, 5, LeaseState.BUSY, shares=(CallShare("a", "acme", 0, "ok"),))], BOOK)

    assert [(line.ns, line.calls) for line in entries.usage.values()] == [(0, 1)]


def test_a_price_that_nobody_knows_is_counted_and_not_free() -> None:
    """It must not stop the fold."""
    entries = entries_of([event(1, 0, 5, price="abacus")], BOOK)

    assert (entries.unpriced, entries.leases[0]["rate"]) == (1, BOOK.rate("gpu"))


def test_cores_and_memory_are_paid_for_beside_the_slice() -> None:
    """Each call pays by its share; what is free leaves no row, and how a call ended is in the slice's row alone."""
    book = load_prices()
    book.put("cpu_core", [DatedRate(nano_usd_per_hour=0)])
    entries = entries_of([busy(1, 0, ("a", 3, "ok"), ("b", 4, ""), core_ppm=2_000_000, gib_ppm=4_000_000)], book)

    gib = ("memory_gib", 4_000_000, book.rate("memory_gib"))
    assert {(key[1], *key[4:]): (line.ns, line.outcome) for key, line in entries.calls.items()} == {
        ("a", "cpu", 1_000_000, book.rate("cpu")): (3, "ok"),
        ("b", "cpu", 1_000_000, book.rate("cpu")): (4, ""),
        ("a", *gib): (3, ""),
        ("b", *gib): (4, ""),
    }
    assert {key[6]: (line.ns, line.calls) for key, line in entries.usage.items()} == {
        "cpu": (7, 1), "memory_gib": (7, 0),
    }  # fmt: skip
    (lease,) = entries.leases
    assert [lease[name] for name in ("core_ppm", "core_rate", "gib_ppm", "gib_rate")] == [2_000_000, 0, *gib[1:]]


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
