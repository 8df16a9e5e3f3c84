"""Calls that were seen, as times by stage: their means, their percentiles, and both after a change of a stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pilotlight_gateway.diagnosis.diagnosis_window import STAGES, CallSample, StageTimes
from pilotlight_gateway.diagnosis.wait_model import weighted_quantile

StageChange = Callable[[StageTimes], StageTimes]
"""What an action makes of a call's stages."""
TAIL = 0.95


def mean_stage(samples: Sequence[CallSample], stage: int) -> float:
    """The mean milliseconds in a stage."""
    weight = sum(each.weight for each in samples)
    return sum(each.stages[stage] * each.weight for each in samples) / weight if weight else 0.0


def mean_total(samples: Sequence[CallSample]) -> float:
    return sum(mean_stage(samples, stage) for stage in range(len(STAGES)))


def tail_ms(samples: Iterable[CallSample], part: float = TAIL) -> float:
    """The 95th percentile of the calls' times."""
    return weighted_quantile([(sum(each.stages), each.weight) for each in samples], part)


def tail_stage(samples: Iterable[CallSample], stage: int, part: float = TAIL) -> float:
    """The 95th percentile of one stage."""
    return weighted_quantile([(each.stages[stage], each.weight) for each in samples], part)


def changed(samples: Iterable[CallSample], change: StageChange) -> tuple[CallSample, ...]:
    """The calls as they would have been."""
    return tuple(CallSample(change(each.stages), each.weight, each.tenant) for each in samples)


def with_stages(stages: StageTimes, new: dict[int, float]) -> StageTimes:
    """The stages of a call with some of them replaced."""
    return tuple(new.get(stage, ms) for stage, ms in enumerate(stages))


def hurt_part(samples: Sequence[CallSample], level_ms: float) -> float:
    """The part of the calls that took longer than the level."""
    weight = sum(each.weight for each in samples)
    return sum(each.weight for each in samples if sum(each.stages) > level_ms) / weight if weight else 0.0
