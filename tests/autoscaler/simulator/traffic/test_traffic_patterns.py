"""Drawn traffic has the shape of its pattern's name."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from pilotlight_autoscaler.simulator.traffic.traffic_patterns import (
    PATTERNS,
    PatternMix,
    draw_binomial,
    draw_poisson,
    draw_traffic,
    parts_of_mix,
)

DAY = 1_440


def drawn(pattern: str, mean: float = 5.0) -> list[int]:
    """Counts by minute of one function over a day."""
    counts = PATTERNS[pattern](mean, DAY, Random(3))
    return [counts.get(minute, 0) for minute in range(DAY)]


def test_each_pattern_has_its_shape() -> None:
    """Night is quieter than day, bursts hold most calls, periods are even, the dying end, the reborn come back."""
    diurnal = drawn("diurnal")
    assert sum(diurnal[: DAY // 4]) < sum(diurnal[DAY // 2 : 3 * DAY // 4])

    bursty = sorted(drawn("bursty"), reverse=True)
    assert sum(bursty[: DAY // 5]) > 0.6 * sum(bursty)

    periodic = [minute for minute, count in enumerate(drawn("periodic")) if count]
    assert len({after - before for before, after in pairwise(periodic)}) == 1

    dying = drawn("dying")
    assert sum(dying[: DAY // 10]) > 0
    assert not any(dying[-DAY // 10 :])

    reborn = [minute for minute, count in enumerate(drawn("reborn")) if count]
    assert max(after - before for before, after in pairwise(reborn)) > 60


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_the_mean_is_about_what_was_asked_for(pattern: str) -> None:
    """Over a day, and for bursts roughly."""
    assert sum(drawn(pattern, 20.0)) / DAY == pytest.approx(20.0, rel=0.6 if pattern == "bursty" else 0.1)


def test_the_same_seed_draws_the_same_traffic() -> None:
    """With as many functions as were asked for, and about the calls."""
    mix = PatternMix(functions=40, minutes=60, calls_per_s=5.0, seed=1, parts={"diurnal": 1.0, "dying": 1.0})

    first, again = draw_traffic(mix, lambda _: 1.0), draw_traffic(mix, lambda _: 1.0)

    assert len(first) == 40
    assert {name.split("-")[0] for name in first} == {"diurnal", "dying"}
    assert {n: t.calls(0) for n, t in first.items()} == {n: t.calls(0) for n, t in again.items()}


def test_counts_are_drawn_by_their_law() -> None:
    """Means of many draws, small and large; never more than there are."""
    dice = Random(1)
    for mean in (0.5, 8.0, 200.0):
        assert sum(draw_poisson(dice, mean) for _ in range(2_000)) / 2_000 == pytest.approx(mean, rel=0.1)
    for tries, chance in ((5, 0.3), (100, 0.02), (100, 0.98), (1_000, 0.5)):
        drawn = [draw_binomial(dice, tries, chance) for _ in range(1_000)]
        assert sum(drawn) / 1_000 == pytest.approx(tries * chance, rel=0.1)
        assert 0 <= min(drawn) <= max(drawn) <= tries
    assert (draw_binomial(dice, 7, 1.0), draw_binomial(dice, 7, 0.0), draw_poisson(dice, 0.0)) == (7, 0, 0)


def test_parts_are_read_or_refused() -> None:
    """By name, with what was expected."""
    assert parts_of_mix(["diurnal=3", "bursty"]) == {"diurnal": 3.0, "bursty": 1.0}
    for word in ("lunar", "diurnal=x", "diurnal=-1"):
        with pytest.raises(ValueError, match="is no pattern: expected such as"):
            parts_of_mix([word])
