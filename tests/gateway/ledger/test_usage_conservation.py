"""Nothing of a device is lost or sold twice, or the account says so."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.ledger.usage_conservation import Interval, account


def interval(t0: int, t1: int, tenant: str = "acme", slice_: str = "s0", ppm: int = 1_000_000) -> Interval:
    return Interval(slice=slice_, ppm=ppm, tenant=tenant, t0=t0, t1=t1)


def test_a_covered_window_is_exact() -> None:
    """Tenants and operator together are the window, and lines reach beyond it without counting there."""
    found = account([interval(-5, 4), interval(4, 6, ""), interval(6, 99, "rival")], 0, 10)

    assert (found.tenants, found.operator) == ({"acme": 4_000_000, "rival": 4_000_000}, 2_000_000)
    assert (found.unrecorded, found.excess) == (0, 0)


def test_gaps_and_uncut_parts_are_the_operators() -> None:
    """A slice of half the device leaves the other half, and a hole in it is a hole."""
    found = account([interval(0, 4, ppm=500_000), interval(6, 10, ppm=500_000)], 0, 10)

    assert found.unrecorded == 10 * 1_000_000 - 8 * 500_000
    assert found.excess == 0


def test_time_sold_twice_is_an_excess() -> None:
    """On one slice, also where a gap elsewhere would cancel it, and over all slices together."""
    assert account([interval(0, 5), interval(4, 8)], 0, 10).excess == 1_000_000
    assert account([interval(0, 10), interval(0, 10, slice_="s1", ppm=1)], 0, 10).excess == 10


@given(st.lists(st.integers(0, 50), min_size=2, max_size=8, unique=True), st.integers(0, 50), st.integers(1, 50))
def test_any_window_of_a_gapless_record_is_exact(cuts: list[int], start: int, length: int) -> None:
    """Splitting the window anywhere splits the account."""
    cuts = sorted(cuts)
    lines = [interval(a, b, tenant) for a, b, tenant in zip(cuts, cuts[1:], "xyxyxyxy", strict=False)]
    whole = account(lines, start, start + 2 * length)
    halves = [account(lines, start, start + length), account(lines, start + length, start + 2 * length)]

    assert whole.excess == 0
    for tenant in "xy":
        assert whole.tenants.get(tenant, 0) == sum(half.tenants.get(tenant, 0) for half in halves)
    assert whole.unrecorded == sum(half.unrecorded for half in halves)
