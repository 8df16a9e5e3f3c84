"""Batches that stay small, wait, or take too long."""

from __future__ import annotations

from typing import Any

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.diagnosis_window import BatchTimes
from tests.gateway.diagnosis.windows import calls, window

BATCHED: dict[str, Any] = {"is_batched": True, "batch_most": 16, "slots": 32, "wait_ms": 2.0}


def starved(**more: Any) -> Any:
    return window(
        calls(queue=500.0, batch_wait=30.0, execute=32.0),
        **BATCHED | {"batches": (BatchTimes(1, 100, 31.0), BatchTimes(2, 450, 32.0)), "busy_s": 17.5,
                     "containers": 0.18, "queued": 5.0, "max_containers": 1} | more,
    )  # fmt: skip


def test_batches_that_cannot_grow_starve_their_containers() -> None:
    found = diagnose(starved(slots=2))

    assert found.name == "starved"
    assert "they take only 2 calls at a time where a batch may have 16" in found.says
    assert found.cures[0].changes == {"slots": 16.0}


def test_a_bound_of_their_cost_keeps_batches_small_too() -> None:
    found = diagnose(starved(batch_cost_most=2.0))

    assert found.name == "starved"
    assert "max_batch_cost=2 ends them" in found.says
    assert found.cures[0].what.startswith("max_batch_cost=")


def test_batches_wait_for_company_that_does_not_come() -> None:
    found = diagnose(
        window(
            calls(batch_wait=380.0, execute=25.0),
            **BATCHED | {"wait_ms": 400.0, "batches": (BatchTimes(4, 250, 25.0),), "busy_s": 6.2},
        )
    )

    assert found.name == "waits"
    assert found.cures[0].what == "wait_ms=30 in its batching"


def test_batches_are_too_large_if_smaller_ones_would_do() -> None:
    found = diagnose(
        window(
            calls(batch_wait=150.0, execute=300.0),
            **BATCHED | {"batch_most": 32, "batches": (BatchTimes(4, 10, 63.0), BatchTimes(24, 40, 303.0)),
                         "busy_s": 12.8, "containers": 1.0},
        )
    )  # fmt: skip

    assert found.name == "large_batches"
    assert found.cures[0].what == "max_batch_size=10"
