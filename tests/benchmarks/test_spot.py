"""The benchmark of spot machines: what it plays, and that the product's policy does what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import spot
from benchmarks.spot import DAY_S, BadTrace, Interval, Setting, SpotRun, drawn_availability, play, read_trace
from pilotlight_autoscaler.observations.world import NODE_LOST_S

HEADING = "zone,start_s,end_s,capacity\n"


def test_the_same_seed_is_the_same_weather() -> None:
    """Another one is another, and zones have their machines most of the time."""
    one = drawn_availability(1, 10.0)
    assert one == drawn_availability(1, 10.0)
    assert one != drawn_availability(2, 10.0)
    assert len(one) == 9
    for intervals in one.values():
        there_s = sum(min(each.end_s, 10 * DAY_S) - each.start_s for each in intervals)
        assert 0.5 < there_s / (10 * DAY_S) <= 1.0


def test_two_weeks_are_above_the_bounds() -> None:
    """Whatever the notice; without a spare in bad times it is less."""
    trace = drawn_availability(spot.SEED, 14.0)
    for notice in spot.NOTICES_S:
        result = play(trace, Setting(notice_s=notice), 14 * DAY_S)
        assert result.capacity_share >= 0.98
        assert result.cost_ratio <= 0.35


def test_a_machine_that_is_taken_away_is_missed_for_a_start() -> None:
    """With a notice from then on, without one when it has been silent for a while; a zone without machines is found."""
    away = {"a": (Interval(start_s=0.0, end_s=10_000.0),), "b": (Interval(start_s=0.0, end_s=50_000.0),)}
    plain = Setting(wanted=1, has_goal=False, falls_back=False)
    run = SpotRun(trace=away, setting=plain, end_s=20_000.0)
    assert run.result().capacity_share == pytest.approx(1 - 2 * 390.0 / 20_000.0)
    silent = play(away, Setting(wanted=1, has_goal=False, falls_back=False, notice_s=None), 20_000.0)
    assert silent.capacity_share == pytest.approx(1 - (2 * 390.0 + NODE_LOST_S) / 20_000.0)
    assert silent.preemptions == 1


def test_machines_on_demand_stand_in_where_there_are_no_others() -> None:
    """They cost what they cost."""
    nowhere = {"a": (Interval(start_s=90_000.0, end_s=99_000.0),)}
    result = play(nowhere, Setting(wanted=2), 10_000.0)
    assert result.capacity_share == pytest.approx(1 - 390.0 / 10_000.0)
    assert result.cost_ratio == pytest.approx(1.0)
    assert result.failed_launches > 2


def test_a_recording_is_read_and_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows in any order; the figures are the last line."""
    file = tmp_path / "trace.csv"
    file.write_text(f"{HEADING}r/b,0,90000,2\nr/a,50000,100000,\nr/a,0,40000,\n")
    trace = read_trace(file)
    assert [each.start_s for each in trace["r/a"]] == [0.0, 50_000.0]
    assert trace["r/b"][0].capacity == 2
    monkeypatch.setattr(sys, "argv", ["spot", "--trace", str(file)])
    spot.main()
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    assert 0.9 < figures["capacity_share"] < 1.0
    assert 0.3 <= figures["cost_ratio"] < 0.5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("zone,start_s\n", "the heading lacks end_s"),
        (HEADING, "no rows"),
        (f"{HEADING}a,0,soon,\n", ":2: expected numbers"),
        (f"{HEADING}a,9,9,\n", ":2: expected a zone"),
        (f"{HEADING}a,0,9,\na,8,12,\n", "rows of the zone a overlap"),
    ],
)
def test_a_recording_that_cannot_be_played_says_where(tmp_path: Path, text: str, why: str) -> None:
    """The line, and what was expected there."""
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(BadTrace, match=why):
        read_trace(file)
