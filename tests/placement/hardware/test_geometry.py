"""MIG geometry against counts that were found by exhaustive enumeration."""

from __future__ import annotations

from collections import Counter

import pytest

from pilotlight_core.model.devices import MigPlacement
from pilotlight_placement.hardware.catalogue import family, standard
from pilotlight_placement.hardware.geometry import Family, layouts, maximal_layouts, reachable

BASE = ("1g", "2g", "3g", "4g", "7g")
DOUBLE = (*BASE, "1g.2x")
FOUR = ("1g", "2g", "4g")


@pytest.mark.parametrize(
    ("name", "keys", "legal", "maximal", "masks"),
    [
        pytest.param("seven", BASE, 298, 19, 144, id="seven slices"),
        pytest.param("seven", DOUBLE, 723, 78, 192, id="with double memory"),
        pytest.param("four", FOUR, 26, 5, 16, id="A30"),
    ],
)
def test_layouts_are_exactly_the_known_ones(
    name: str, keys: tuple[str, ...], legal: int, maximal: int, masks: int
) -> None:
    """Legal layouts, maximal ones and reachable occupancies are as many as an independent enumeration found."""
    cut = family(name)

    assert len(set(layouts(cut, keys))) == len(list(layouts(cut, keys))) == legal
    assert len(set(maximal_layouts(cut, keys))) == maximal
    assert len(reachable(cut, keys)) == masks


@pytest.mark.parametrize(("keys", "multisets"), [(BASE, 14), (DOUBLE, 38)])
def test_maximal_layouts_are_as_many_multisets_as_published(keys: tuple[str, ...], multisets: int) -> None:
    """What a device can hold at most, regardless of the order in which it lies there."""
    found = {tuple(sorted(i.profile for i in layout)) for layout in maximal_layouts(family("seven"), keys)}

    assert len(found) == multisets


def test_no_layout_takes_more_than_its_device_has() -> None:
    """Masks suffice: compute slices, SMs and the driver's own maxima are never exceeded by what does not overlap."""
    for device in standard().devices.values():
        if device.family is None:
            continue
        sms = {cut.profile.key: cut.sms for cut in device.cuts}
        for layout in layouts(device.family, device.family.by_key):
            counts = Counter(instance.profile for instance in layout)
            profiles = device.family.by_key
            assert sum(profiles[key].compute * n for key, n in counts.items()) <= device.family.compute
            assert sum(sms[key] * n for key, n in counts.items()) <= device.sms
            assert all(n <= profiles[key].most for key, n in counts.items())


def test_tables_agree_with_the_definition() -> None:
    """For every mask and profile: the free starts are those whose slices are all free."""
    for name in ("seven", "four"):
        cut = family(name)
        for mask in range(cut.full + 1):
            taken = {slot for slot in range(cut.slots) if mask >> slot & 1}
            assert cut.free_slots[mask] == cut.slots - len(taken)
            for profile in cut.profiles:
                free = [s for s in profile.starts if taken.isdisjoint(range(s, s + profile.size))]
                assert list(cut.free_starts[mask][profile.index]) == free
                assert bool(cut.fits[mask] >> profile.index & 1) == bool(free)


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(((0, "3g"), (2, "2g")), id="overlap"),
        pytest.param(((4, "4g"),), id="no legal start"),
        pytest.param(((0, "1g.me"), (1, "1g.me")), id="two with media engines"),
        pytest.param(((0, "5g"),), id="no such profile"),
    ],
)
def test_an_illegal_layout_is_refused(layout: tuple[tuple[int, str], ...]) -> None:
    """It has no occupancy."""
    cut: Family = family("seven")

    with pytest.raises(ValueError, match=r"media|legal|overlaps"):
        cut.masks_of(MigPlacement(start=start, profile=profile) for start, profile in layout)
