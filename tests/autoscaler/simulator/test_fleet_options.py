"""A fleet in words, or as a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pilotlight_autoscaler.simulator.fleet_options import BadFleet, groups_of
from pilotlight_placement.capacity_planner.planner_command import main as plan


def test_words_name_kind_count_and_mode() -> None:
    groups = groups_of(["h100-80gb:8", "A100-80GB:2:mig", "T4:4:shared", "CPU:9"])
    assert [(g.device.name if g.device else "CPU", g.count, g.mig, g.shareable) for g in groups] == [
        ("H100-80GB", 8, False, False), ("A100-80GB", 2, True, False), ("T4", 4, False, True), ("CPU", 9, False, False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("H100-80GB", "is no part of a fleet"), ("X9:1", "is no GPU that is known"), ("T4:1:mig", "has no MIG mode"),
        ("T4:0", "is no part"), ("none.json", "expected what pilotlight plan"), ("T4:1000001", "is no part"),
    ],
)  # fmt: skip
def test_what_is_no_fleet_is_refused(word: str, said: str) -> None:
    with pytest.raises(BadFleet, match=said):
        groups_of([word])


def test_a_plan_is_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GPUs that it cuts are in MIG mode."""
    demand = tmp_path / "demand.csv"
    demand.write_text(
        "function,rps,gpu,slice,batch,latency_ms\na,600,A100-80GB,3g,8,40\nb,1000,T4,,8,40\n", encoding="utf-8"
    )
    assert plan(["--demand", str(demand), "--solver", "greedy", "--json"]) == 0
    told = capsys.readouterr().out
    (tmp_path / "plan.json").write_text(told)

    groups = groups_of([str(tmp_path / "plan.json")])

    counts = {group.device.name: group.count for group in groups if group.device}
    assert counts == json.loads(told)["gpus"]
    assert {group.device.name for group in groups if group.device and group.mig} == {"A100-80GB"}
