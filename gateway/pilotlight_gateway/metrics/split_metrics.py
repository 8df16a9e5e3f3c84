"""Metrics of calls whose traffic is split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric

from pilotlight_core.model.rollouts.rollout_record import Arm

UNKEYED = "unkeyed"
SIDES = (*(arm for arm in Arm if arm is not Arm.OUTSIDE), UNKEYED)


def split_call_counts(counts: Mapping[str, int]) -> Iterator[Metric]:
    """Calls of functions in a rollout by their side, and those that did not say what their rollout is sticky by."""
    family = CounterMetricFamily(
        "pilotlight_split_calls",
        "Calls of functions in a rollout by side; unkeyed: those drawn by themselves that were to be sticky.",
        labels=("side",),
    )
    for side in SIDES:
        family.add_metric((side,), counts.get(side, 0))
    yield family
