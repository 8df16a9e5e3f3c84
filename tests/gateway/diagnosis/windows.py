"""Windows of functions: healthy, but for what a test changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotlight_gateway.diagnosis.diagnosis_window import STAGES, BatchTimes, CallSample, DiagnosisWindow

CALLS = 1_000


def sample(weight: float = 1.0, tenant: str = "", **ms: float) -> CallSample:
    """A call with so many milliseconds in some stages."""
    return CallSample(tuple(ms.get(stage, 0.0) for stage in STAGES), weight, tenant)


def calls(**ms: float) -> tuple[CallSample, ...]:
    """Calls that are alike, but that a tenth takes a tenth longer in each stage."""
    slower = {stage: 1.1 * each for stage, each in ms.items()}
    return (sample(0.9 * CALLS, "", **ms), sample(0.1 * CALLS, "", **slower))


def window(samples: tuple[CallSample, ...] | None = None, **changes: Any) -> DiagnosisWindow:
    """100 s of 10 calls a second, each of which runs for 50 ms in one of two containers."""
    seen = calls(gateway=0.2, queue=0.1, transport=0.3, execute=50.0, respond=0.2) if samples is None else samples
    weight = sum(each.weight for each in seen) or 1.0
    mean_ms = sum(sum(each.stages) * each.weight for each in seen) / weight
    execute = STAGES.index("execute")
    run_ms = sum(each.stages[execute] * each.weight for each in seen) / weight
    plain = DiagnosisWindow(
        function="shop.f@v1",
        seconds=100.0,
        level_ms=300.0,
        arrivals=CALLS,
        completed=CALLS,
        mean_inside=CALLS * mean_ms / 1000 / 100.0,
        mean_ms=mean_ms,
        samples=seen,
        batches=(BatchTimes(1, CALLS, run_ms),),
        containers=2.0,
        busy_s=CALLS * run_ms / 1000,
        guest_cpu_s=1.0,
        throttled_s=0.0,
        loop_part=0.05,
        max_containers=2,
    )
    return replace(plain, **changes)
