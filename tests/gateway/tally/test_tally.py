"""Counts of one function: examples are drawn fairly, and parts add up."""

from __future__ import annotations

import random

import pytest

from pilotlight_core.model.messages.seeing.tallies import MOST_SAMPLES, MOST_SIZES, MOST_UNITS, FunctionTally
from pilotlight_gateway.tally.tally import SAMPLES, SLOWEST, TallyCounts, calls_of, gpu_ms_of, stages_of
from pilotlight_gateway.tally.tally_ring import sealed


def counted(total_ms: list[float], since_ns: int = 1, until_ns: int = 2) -> FunctionTally:
    counts = TallyCounts(since_ns)
    for number, each in enumerate(total_ms):
        counts.ended += 1
        counts.durations.add(each)
        counts.offer(f"call_{number}", 5, each, {"queue": each / 4, "execute": each / 2}, 2, 1, is_cold=False)
    return counts.value(until_ns)


def test_samples_stand_for_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is as likely to be drawn, so their weighted mean is that of all, about."""
    draw = random.Random(4)
    monkeypatch.setattr(random, "random", draw.random)
    means = []
    for _ in range(60):
        seen = counted([float(number) for number in range(400)])
        assert len(seen.samples) == SAMPLES
        assert sum(each.weight for each in seen.samples) == pytest.approx(400)
        means.append(sum(each.total_us * each.weight for each in seen.samples) / 400 / 1000)
    assert sum(means) / len(means) == pytest.approx(199.5, rel=0.08)


def test_the_slowest_are_all_there() -> None:
    seen = counted([float(number % 97) for number in range(400)])
    assert [each.total_us for each in seen.slowest] == [96_000] * 4 + [95_000] * 4
    assert len(seen.slowest) == SLOWEST
    assert stages_of(seen.slowest[0])["execute"] == 48.0
    assert list(stages_of(seen.slowest[0]))[:3] == ["gateway", "preprocess", "queue"]


def test_parts_add_up_within_the_bounds_of_a_message() -> None:
    """Samples keep standing for as many calls as there were."""
    whole = TallyCounts(0)
    for part in range(60):
        whole.merge(counted([10.0 + part] * 30, since_ns=part + 1, until_ns=part + 2))
    seen = whole.value(whole.until_ns)
    assert (seen.since_ns, seen.until_ns, seen.ended, calls_of(seen)) == (1, 61, 1_800, 1_800)
    assert len(seen.samples) == MOST_SAMPLES
    assert sum(each.weight for each in seen.samples) == pytest.approx(1_800)
    assert seen.slowest[0].total_us == 69_000


def test_what_tenants_name_is_bounded() -> None:
    """Units, sizes of batches and steps of starts."""
    counts = TallyCounts(1)
    for number in range(200):
        counts.add_units({f"unit{number}": 1})
        counts.add_batch(number * 1_000 + 1, 1.0)
        counts.add_steps({f"step{number}": 1.0})
        counts.add_stages({f"stage{number}": 1.0})
    seen = counts.value(2)
    assert len(seen.units) == MOST_UNITS
    assert len(seen.batches) <= MOST_SIZES
    assert len(seen.cold_steps) == 32
    assert seen.stages == {}
    assert gpu_ms_of(seen) == 200.0


def test_calls_inside_at_the_end_are_those_of_all_gateways() -> None:
    """Of the last part of each; of earlier ones nothing is left."""
    whole = TallyCounts(0)
    whole.merge(FunctionTally(since_ns=1, until_ns=2, inside=5))
    whole.merge(FunctionTally(since_ns=2, until_ns=3, inside=2))
    whole.merge(FunctionTally(since_ns=2, until_ns=3, inside=1))
    assert whole.inside == 3


def test_of_many_calls_each_fourth_tells_its_stages_for_four() -> None:
    """So their number and their sum are about right."""
    counts = TallyCounts(1)
    for _ in range(1_000):
        counts.ended += 1
        counts.add_stages({"execute": 20.0, "queue": 0.0})
    seen = counts.value(2).stages
    assert list(seen) == ["execute"]
    assert sum(seen["execute"].counts) == 1_000
    assert seen["execute"].sum == pytest.approx(20_000)


def test_whatever_agents_report_makes_a_part_that_can_be_read() -> None:
    """Sizes, times and steps beyond what a message may say."""
    counts = TallyCounts(1)
    for _ in range(3):
        counts.ended += 1
        counts.add_batch(2**40, 9e11)
        counts.add_steps({"load": 9e11})
        counts.add_units({"tokens": 2**53})
        counts.busy_ns += 2**62
        counts.durations.add(-5.0)
        counts.offer("call_1", 5, -5.0, {"execute": -1.0}, 2**40, 1, is_cold=True)
    seen = sealed(counts.value(2)).tally()
    assert (seen.busy_ns, seen.units, seen.cold_steps) == (2**62, {"tokens": 2**53}, {"load": 1e12})
    assert list(seen.batches) == [2**20]
