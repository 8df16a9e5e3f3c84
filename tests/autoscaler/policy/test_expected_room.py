"""When the next container is expected to be idle."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_autoscaler.policy.expected_room import call_s, idle_in_s, next_idle_s
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.builders import demand
from tests.builders.nodes import container
from tests.builders.specs import function_spec


def view(*, gpu: bool = False, running: int = 1, **told: Any) -> VersionView:
    """A version with one container, whose calls may take a minute."""
    spec = function_spec(timeout=60, gpu=(GpuAsk("H100"),) if gpu else ())
    return VersionView(
        spec=spec, deployed=True, demand=demand("ver_1", **told), containers=(container(running=running),)
    )


def test_a_call_takes_what_calls_took_or_may_take() -> None:
    """Before one has ended, its timeout; never more."""
    assert call_s(view(service_ms=2_000.0)) == 2.0
    assert call_s(view()) == 60.0
    assert call_s(view(service_ms=90_000.0)) == 60.0


def test_a_container_is_idle_when_all_that_wait_are_done() -> None:
    """One that is idle already may go in a moment."""
    assert idle_in_s(view(service_ms=2_000.0, queued=3)) == pytest.approx(9.0)
    assert idle_in_s(view(running=0)) == 1.0


def test_only_the_same_kind_of_slice_is_looked_at() -> None:
    """0 if there is none."""
    there = [view(gpu=True), view(service_ms=2_000.0)]

    assert next_idle_s(there, on_gpu=False) == pytest.approx(3.0)
    assert next_idle_s(there, on_gpu=True) == pytest.approx(61.0)
    assert next_idle_s(there[1:], on_gpu=True) == 0.0
