"""What a metric of a window is, by the names that promises use."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.call_samples import mean_total, tail_ms
from pilotlight_gateway.diagnosis.diagnosis_case import BUDGET_CODES, FAILING_CODES, FULL_CODES, QUOTA_CODES
from pilotlight_gateway.diagnosis.diagnosis_window import START, DiagnosisWindow, EngineFacts


def measured(window: DiagnosisWindow, metric: str, tenant: str = "") -> float:
    """The metric of a window; `tenant` is whose calls others had slowed."""
    if metric == "slowed_mean_ms":
        return next((flow.mean_ms for flow in window.flows if flow.tenant == tenant), 0.0)
    arrivals = max(1, window.arrivals)
    found = {
        "p95_ms": window.p95_ms if window.p95_ms is not None else tail_ms(window.samples),
        "mean_ms": window.mean_ms if window.mean_ms is not None else mean_total(window.samples),
        "rate": window.rate,
        "loop_part": window.loop_part or 0.0,
        "link_part": window.link_part or 0.0,
        "gpu_ms_per_call": (window.busy_s or 0.0) * 1000 / max(1, window.completed),
        "start_part": _start_part(window),
        "limited_part": window.codes(*QUOTA_CODES, *BUDGET_CODES) / arrivals,
        "full_part": window.codes(*FULL_CODES) / arrivals,
        "failing_part": window.codes(*FAILING_CODES) / arrivals,
        "failed_starts": float(window.failed_starts),
        "idle_ends": float(window.idle_ends),
        "died": float(window.died),
        "slowdown": max((flow.slowdown for flow in window.flows), default=1.0),
    }
    if window.engine is not None:
        found |= _of_engine(window.engine)
    return found[metric]


def _start_part(window: DiagnosisWindow) -> float:
    total = sum(sum(each.stages) * each.weight for each in window.samples)
    return sum(each.stages[START] * each.weight for each in window.samples) / total if total else 0.0


def _of_engine(engine: EngineFacts) -> dict[str, float]:
    return {
        "tokens_per_s": engine.tokens_per_s,
        "first_token_ms": engine.first_token_ms,
        "gap_ms": engine.gap_ms,
    }
