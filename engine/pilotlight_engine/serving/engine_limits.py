"""What bounds the steps of an engine, as its function says."""

from __future__ import annotations

from pilotlight_core.model.engines.engine_spec import EngineSpec
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits

TORCH_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
"""Of types of numbers, as torch and models' files call them."""


def limits_of(spec: EngineSpec) -> SchedulerLimits:
    """The limits that a specification names."""
    return SchedulerLimits(
        token_budget=spec.max_tokens_per_step, max_running=spec.max_sequences, prefix_cache=spec.prefix_cache
    )
