"""What a change of an occupancy mask costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.fragmentation.mask_fragmentation import MaskFragmentation, open_on, tau_of
from pilotlight_placement.hardware.catalogue import family
from pilotlight_placement.hardware.geometry import layouts, reachable

SEVEN = family("seven")
PLAIN = ("1g", "1g.2x", "2g", "3g", "4g", "7g")
KEYS = SEVEN.by_key


def mix(**parts: float) -> list[float]:
    """`mix(g1=1, g7=2)`: parts in demand by profile index."""
    return [parts.get("g" + profile.key.replace("g", "").replace(".", "_"), 0.0) for profile in SEVEN.profiles]


UNIFORM = [0.0 if profile.media else 1.0 for profile in SEVEN.profiles]
mixes = st.lists(st.floats(0, 1), min_size=7, max_size=7).filter(lambda parts: sum(parts) > 0)
fleets = st.dictionaries(st.sampled_from(sorted(reachable(SEVEN, PLAIN))), st.integers(1, 60), min_size=1, max_size=12)


def best(profile: str, devices: dict[int, int], parts: list[float], running: float = 200, free: float = 0.1) -> object:
    tables = MaskFragmentation(SEVEN, parts)
    prices = tables.prices(open_on(SEVEN, devices), running, free)
    found = tables.best(KEYS[profile].index, devices, prices)
    return None if found is None else found[1:]


@given(mixes, fleets, st.sampled_from(PLAIN), st.floats(0, 1000), st.floats(0, 1))
def test_the_best_place_is_a_free_one_and_none_is_cheaper(
    parts: list[float], devices: dict[int, int], key: str, running: float, free: float
) -> None:
    """It lies at a legal start on free slices of a mask that occurs; None exactly if the profile fits nowhere."""
    tables = MaskFragmentation(SEVEN, parts)
    profile = KEYS[key]
    prices = tables.prices(open_on(SEVEN, devices), running, free)
    found = tables.best(profile.index, devices, prices)

    fits = [mask for mask in devices if SEVEN.free_starts[mask][profile.index]]
    if found is None:
        assert not fits
        return
    cost, mask, start = found
    assert mask in devices
    assert start in SEVEN.free_starts[mask][profile.index]
    everywhere = [change for other in fits for change in tables.changes[profile.index][other]]
    assert cost <= min(tables.cost(change, prices) for change in everywhere) + 1e-9


@given(mixes, fleets, st.floats(0, 1000), st.floats(0, 1))
def test_no_price_is_negative_and_the_last_room_is_dearest(
    parts: list[float], devices: dict[int, int], running: float, free: float
) -> None:
    """A place is dearer the fewer there are of it."""
    tables = MaskFragmentation(SEVEN, parts)
    counts = open_on(SEVEN, devices)
    now = tables.prices([count + 1 for count in counts], running, free)
    scarcer = tables.prices([max(1, count) for count in counts], running, free)

    assert all(price >= 0 for price in now)
    assert all(a <= b + 1e-15 for a, b in zip(now, scarcer, strict=True))


@given(mixes)
def test_hope_falls_with_every_instance(parts: list[float]) -> None:
    """The empty device has all of it, the full one next to none, and an instance more is never a gain."""
    tables = MaskFragmentation(SEVEN, parts)

    assert tables.expected_value[0] == max(tables.expected_value)
    assert all(change.expected_value >= -1e-9 for rows in tables.changes for row in rows[:1] for change in row)


def test_the_last_empty_device_is_kept_for_what_needs_it() -> None:
    """A small instance goes beside others as long as 7g is asked for and one device is empty."""
    half = KEYS["3g"].mask(4)
    assert best("1g", {0: 1, half: 5}, UNIFORM) == (half, 3)


def test_what_is_plentiful_is_not_guarded() -> None:
    """With hundreds of empty devices the prices of 7g are nothing: only hope decides."""
    tables = MaskFragmentation(SEVEN, UNIFORM)
    counts = open_on(SEVEN, {0: 500})
    assert max(tables.prices(counts, 100, 0.9)) < 1e-9


def test_a_small_instance_leaves_the_lower_half_to_4g() -> None:
    """On an empty device 1g takes the high end; low starts would cost 4g its only one."""
    assert best("1g", {0: 3}, mix(g1=1, g4=1)) == (0, 6)


def test_what_nobody_asks_for_costs_nothing() -> None:
    """Where only 1g is asked for, no other profile has a price."""
    tables = MaskFragmentation(SEVEN, mix(g1=1))
    prices = tables.prices(open_on(SEVEN, {0: 1}), 10, 0.5)
    assert [bool(price) for price in prices] == [profile.key == "1g" for profile in SEVEN.profiles]


def test_a_mix_of_the_wrong_length_is_refused() -> None:
    """As is one in which nothing is asked for."""
    with pytest.raises(ValueError, match="seven: a part in demand"):
        MaskFragmentation(SEVEN, [1.0])
    with pytest.raises(ValueError, match="seven: a part in demand"):
        MaskFragmentation(SEVEN, [0.0] * 7)


def test_other_families_have_tables_too() -> None:
    """A30: four slices, and every reachable mask has a hope between none and that of the empty device."""
    four = family("four")
    tables = MaskFragmentation(four, [1.0] * len(four.profiles))
    masks = {four.masks_of(layout) for layout in layouts(four, ("1g", "2g", "4g"))}
    assert all(0 <= tables.expected_value[mask] <= tables.expected_value[0] for mask in masks)


def test_demand_widens_the_margin() -> None:
    """tau grows with demand, slower than in proportion."""
    assert tau_of(1) < tau_of(100) < 100 * tau_of(1)
