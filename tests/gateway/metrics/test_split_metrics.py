"""Calls whose traffic is split are counted by side."""

from __future__ import annotations

from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.metrics.split_metrics import split_call_counts


def test_each_side_has_a_line() -> None:
    """Also before its first call."""
    (family,) = split_call_counts({Arm.CANARY: 3, "unkeyed": 1})

    assert {sample.labels["side"]: sample.value for sample in family.samples} == {
        "control": 0, "twin": 0, "canary": 3, "unkeyed": 1,
    }  # fmt: skip
