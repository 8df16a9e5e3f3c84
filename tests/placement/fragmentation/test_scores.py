"""Scores of places: what they must prefer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.fragmentation.scores import (
    ScoreRow,
    best_start,
    devices_of,
    profile_weights,
    scores_of,
)
from pilotlight_placement.hardware.catalogue import family, standard
from pilotlight_placement.hardware.node import SHARE_UNITS

SEVEN = family("seven")
H100 = standard()["H100-80GB"]
NO_PRICES = (0.0,) * len(SEVEN.profiles)
MIXED = {
    AskShape(mib=8_000, share=False): 0.5,
    AskShape(mib=18_000, share=False): 0.2,
    AskShape(mib=40_000, share=False): 0.3,
}


def row_of(key: str, masks: Iterable[int], prices: Sequence[float] = NO_PRICES) -> ScoreRow:
    scores = scores_of(H100, MIXED).masks
    assert scores is not None
    found = {mask: best_start(scores, SEVEN.by_key[key].index, mask, prices) for mask in masks}
    return tuple(sorted((best[0], mask, best[1]) for mask, best in found.items() if best))


def test_the_first_small_instance_starts_high() -> None:
    """On an empty device: the lower half stays free for large profiles as long as it can."""
    assert row_of("1g", [0])[0][2] == 6
    assert row_of("2g", [0])[0][2] == 4
    assert row_of("3g", [0])[0][2] == 4


def test_what_is_begun_is_filled_before_something_whole_is_broken() -> None:
    """A 1g prefers a device with a gap of its size to an empty one."""
    gap = 0b1111_1110  # slice 0 alone is free

    assert [mask for _, mask, _ in row_of("1g", [0, gap])] == [gap, 0]


def test_the_last_place_of_a_kind_is_spared() -> None:
    """With a price on a profile, a mask in which it fits goes after one in which it does not."""
    four = SEVEN.by_key["4g"].index
    prices = [0.5 if index == four else 0.0 for index in range(len(SEVEN.profiles))]
    broken, whole = 0b0000_1000, 0b1111_0000  # 4g fits in the second only

    assert [mask for _, mask, _ in row_of("2g", [whole, broken], prices)] == [broken, whole]


def test_every_state_has_its_best_start() -> None:
    """For each profile exactly the masks in which it fits, at a legal start."""
    for profile in SEVEN.profiles:
        row = row_of(profile.key, range(256))
        assert {mask for _, mask, _ in row} == {m for m in range(256) if SEVEN.free_starts[m][profile.index]}
        assert all(start in SEVEN.free_starts[mask][profile.index] for _, mask, start in row)


def test_a_shape_counts_for_the_cheapest_profile_that_holds_it() -> None:
    """What several devices share, and what none holds, does not count."""
    mix = {
        AskShape(mib=18_000): 0.5,
        AskShape(mib=0, share=False): 0.3,
        AskShape(mib=0, count=4): 0.1,
        AskShape(mib=200_000): 0.1,
    }
    weights = profile_weights(H100, mix)
    prior = profile_weights(H100, {})

    gained = {SEVEN.profiles[i].key: round(w - prior[i], 6) for i, w in enumerate(weights) if w != prior[i]}
    assert gained == {"1g.2x": 0.5, "7g": 0.3}


def test_shapes_for_other_models_do_not_count() -> None:
    """Nor do those that are too large, for shares and groups as for profiles."""
    mix = {AskShape(mib=18_000, types=("T4",)): 1.0, AskShape(mib=0, count=4, types=("A100", "T4")): 1.0}

    assert scores_of(H100, mix).loads == scores_of(H100, {}).loads
    assert scores_of(H100, mix).groups == scores_of(H100, {}).groups
    assert profile_weights(H100, {}) == profile_weights(H100, {AskShape(mib=200_000): 1.0})


def test_groups_of_devices_are_weighted_by_demand() -> None:
    """And a little without any, so that nodes of empty devices are not broken for nothing."""
    scores = scores_of(H100, {AskShape(mib=0, count=4): 0.5})

    assert scores.groups[4] > 0.5 > scores.groups[2] > 0
    assert scores.hosting(4) > scores.hosting(3) + 2
    assert scores.hosting(1) == 0


def test_an_ask_takes_its_part_of_a_device() -> None:
    """A count of whole ones, a part by memory, nothing where one is too small."""
    assert devices_of(AskShape(mib=0, count=4), H100) == 4
    assert devices_of(AskShape(mib=H100.memory // 2), H100) == pytest.approx(0.5, abs=1e-4)
    assert devices_of(AskShape(mib=H100.memory + 1), H100) == 0


def test_a_device_with_more_free_carries_more() -> None:
    """Where halves are asked for, one half is worth its half, and what is less nothing."""
    scores = scores_of(H100, {AskShape(mib=H100.memory // 2): 1.0})

    assert scores.load(SHARE_UNITS) == 1
    assert 0.4 < scores.load(SHARE_UNITS // 2) <= 0.5
    assert scores.load(SHARE_UNITS // 2 - 1) == 0
