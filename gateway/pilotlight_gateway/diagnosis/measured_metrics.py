"""What the metrics that promises name are in a window."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.call_samples import mean_total, tail_ms
from pilotlight_gateway.diagnosis.diagnosis_case import BUDGET_CODES, FAILING_CODES, FULL_CODES, QUOTA_CODES
from pilotlight_gateway.diagnosis.diagnosis_window import START, DiagnosisWindow


def measured_metrics(window: DiagnosisWindow, tenant: str = "") -> dict[str, float]:
    """All of them, as far as they are known; `tenant` is whose calls others slow down."""
    arrivals = max(1, window.arrivals)
    found: dict[str, float | None] = {
        "p95_ms": window.p95_ms if window.p95_ms is not None else tail_ms(window.samples),
        "mean_ms": window.mean_ms if window.mean_ms is not None else mean_total(window.samples),
        "rate": window.rate,
        "loop_part": window.loop_part,
        "link_part": window.link_part,
        "gpu_ms_per_call": window.busy_s * 1000 / max(1, window.completed) if window.busy_s is not None else None,
        "start_part": _start_part(window),
        "limited_part": window.codes(*QUOTA_CODES, *BUDGET_CODES) / arrivals,
        "full_part": window.codes(*FULL_CODES) / arrivals,
        "failing_part": window.codes(*FAILING_CODES) / arrivals,
        "failed_starts": float(window.failed_starts),
        "idle_ends": float(window.idle_ends),
        "died": float(window.died),
        "slowed_mean_ms": _slowed_ms(window, tenant),
    }
    if (engine := window.engine) is not None:
        found |= {
            "tokens_per_s": engine.tokens_per_s,
            "first_token_ms": engine.first_token_ms,
            "gap_ms": engine.gap_ms,
        }
    return {name: value for name, value in found.items() if value is not None}


def _start_part(window: DiagnosisWindow) -> float:
    total = sum(sum(each.stages) * each.weight for each in window.samples)
    return sum(each.stages[START] * each.weight for each in window.samples) / total if total else 0.0


def _slowed_ms(window: DiagnosisWindow, tenant: str) -> float | None:
    if tenant:
        return next((flow.mean_ms for flow in window.flows if flow.tenant == tenant), None)
    worst = max(window.flows, key=lambda flow: flow.slowdown, default=None)
    return worst.mean_ms if worst is not None else None
