"""Rules of service levels: how fast the error budget burns, over several windows, and when somebody is told.

Google's *Site Reliability Workbook*, chapter 5 ("Alerting on SLOs", the sixth approach): an alert fires while both a
long window and a short one burn; the long one says that it matters, the short one that it goes on. Gateways count good
and bad calls by each function's own service level (`pilotlight_slo_calls_total`), so no bucket stands in for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tools.monitoring import runbook_of

Rule = dict[str, Any]

CALLS = "pilotlight_slo_calls_total"


@dataclass(frozen=True)
class Level:
    """A service level: of the calls that have it, the part `objective` is to be good."""

    name: str
    objective: float
    meaning: str


@dataclass(frozen=True)
class Burn:
    """An alert: the budget of thirty days burns `rate` times too fast over both windows."""

    severity: str
    long: str
    short: str
    rate: float


LEVELS = (
    Level("availability", 0.999, "calls fail by the platform's fault"),
    Level("unary", 0.95, "answers come later than their functions' `p95_ms`"),
    Level("first_chunk", 0.95, "streams begin later than their functions' `ttft_ms`"),
    Level("gap", 0.95, "tokens come later than their functions' `itl_ms`"),
)
BURNS = (
    Burn("critical", "1h", "5m", 14.4),
    Burn("critical", "6h", "30m", 6.0),
    Burn("warning", "1d", "2h", 3.0),
    Burn("warning", "3d", "6h", 1.0),
)
"""Of a month's budget: 2 % in an hour, 5 % in six, 10 % in a day, 10 % in three."""
WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
LEAST_BAD = 5
"""An alert stands for so many bad calls at least: one failure of two calls at night wakes nobody."""
LEAST_CALLS = 10
YOUNG = {"1d": "12h", "3d": "1d"}
"""A long window of which there is less than this says no more than the shorter ones: rates see what there is."""
FEW_BAD = 3
"""Where hardly anybody calls, so many failures without one success between them."""


def ratio(window: str) -> str:
    """The name of the recorded part of bad calls."""
    return f"pilotlight:slo_bad:ratio_rate{window}"


def record_rules() -> list[Rule]:
    """The part of bad calls, of each level over each window."""
    return [
        {
            "record": ratio(window),
            "expr": f'sum by (slo) (rate({CALLS}{{good="false"}}[{window}])) / '
            f"(sum by (slo) (rate({CALLS}[{window}])) > 0)",
        }
        for window in WINDOWS
    ]


def burn_rules() -> list[Rule]:
    """An alert for each level and each pair of windows that could ever fire."""
    return [
        made for level in LEVELS for burn in BURNS if burn.rate * (1.0 - level.objective) < 1.0
        for made in (_burn_rule(level, burn),)
    ]  # fmt: skip


def _burn_rule(level: Level, burn: Burn) -> Rule:
    bound = burn.rate * (1.0 - level.objective)
    of_level = f'{{slo="{level.name}"}}'
    enough = max(LEAST_CALLS, math.ceil(LEAST_BAD / bound))
    conditions = [
        f"{ratio(burn.long)}{of_level} > {bound:.6g}",
        f"{ratio(burn.short)}{of_level} > {bound:.6g}",
        f"sum by (slo) (increase({CALLS}{of_level}[{burn.long}])) >= {enough}",
    ]
    if burn.long in YOUNG:
        conditions.append(f"sum by (slo) ({CALLS}{of_level} offset {YOUNG[burn.long]}) >= 0")
    return {
        "alert": "PilotlightBudgetBurns",
        "expr": " and ".join(conditions),
        "labels": {"severity": burn.severity, "slo": level.name, "window": burn.long},
        "annotations": {
            "summary": f"{_percent(level.objective)} of calls are to keep their level, and {level.meaning}: the error "
            f"budget burns {burn.rate:g} times too fast, over {burn.long} and {burn.short}",
            "description": "`pilotlight diagnose` says what binds.",
            "runbook_url": runbook_of("PilotlightBudgetBurns"),
        },
    }


def few_calls_rule() -> Rule:
    """The alert for platforms where the guard against few calls would hide that none succeeds."""
    bad, good = (
        f'sum by (slo) (increase({CALLS}{{slo="availability",good="{kind}"}}[1h]))' for kind in ("false", "true")
    )
    return {
        "alert": "PilotlightNothingSucceeds",
        "expr": f"{bad} >= {FEW_BAD} unless {good} > 0",
        "for": "5m",
        "labels": {"severity": "critical"},
        "annotations": {
            "summary": "Of the few calls of the last hour none succeeded, by the platform's fault",
            "description": "`pilotlight calls --kept error` lists them, `pilotlight explain CALL_ID` says why.",
            "runbook_url": runbook_of("PilotlightNothingSucceeds"),
        },
    }


def level_rules() -> dict[str, Any]:
    """The file of rules: one group, whose rules are evaluated in order, so alerts see what was recorded for them."""
    return {
        "groups": [{"name": "pilotlight-service-levels", "rules": [*record_rules(), *burn_rules(), few_calls_rule()]}]
    }


def _percent(part: float) -> str:
    return f"{part * 100:g} %"
