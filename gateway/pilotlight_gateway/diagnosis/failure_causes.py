"""Containers that do not start, or die: a crash loop is never a lack of capacity."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.diagnosis_case import DiagnosisCase
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, CureCost, Promise, Suspect

LOAD_CODES = ("load_failed",)
DEATH_CODES = ("container_died", "call_lost")
NEARLY_ALL = 0.93
"""Of the memory that a container may use."""


def crash_loop(case: DiagnosisCase) -> Suspect | None:
    """Containers fail before they are ready, again and again."""
    window = case.window
    failed = window.failed_starts
    if failed < 2 or failed < 0.5 * window.starts:
        return None
    said = f": {window.start_error}" if window.start_error else ""
    logs = f"pilotlight logs {case.what.partition('@')[0]}"
    return Suspect(
        name="crash_loop",
        gains={CallTrouble.FAILING: 1.0, CallTrouble.FULL: 1.0, CallTrouble.SLOW: 0.9, CallTrouble.RATE: 0.9},
        says=f"Crash loop: {failed} of {window.starts} starts of {case.what} failed before it was ready{said}.",
        evidence=(
            f"{window.codes(*LOAD_CODES, 'breaker_open')} calls were refused for that; its breaker is {window.breaker}",
            f"{window.containers:.2g} containers are ready on average: it is not capacity that is missing",
        ),
        cures=(
            Cure(
                cost=CureCost.CALLER,
                what="read the first traceback in its logs, and deploy what mends it",
                command=logs,
                changes={"starts_fail": 0.0},
            ),
            Cure(cost=CureCost.SETTING, what="roll back to the version before"),
        ),
        promises=(
            Promise(metric="failed_starts", value=0.0, tolerance=0.0, at_most=True),
            Promise(metric="failing_part", value=0.0, tolerance=0.0, at_most=True),
        ),
    )


def memory_bound(case: DiagnosisCase) -> Suspect | None:
    """Containers die at their limit of memory."""
    window = case.window
    if window.memory_part < NEARLY_ALL or not window.died:
        return None
    return Suspect(
        name="memory",
        gains={CallTrouble.FAILING: 1.0, CallTrouble.FULL: 0.5, CallTrouble.SLOW: 0.4},
        says=(
            f"Memory-bound: {window.died} containers of {case.what} died, and they use up to {window.memory_part:.0%} "
            f"of the memory that they may."
        ),
        evidence=(f"{window.codes(*DEATH_CODES)} calls were lost with them",),
        cures=(
            Cure(cost=CureCost.VERSION, what="twice the memory=", changes={"memory_factor": 2.0}),
            Cure(cost=CureCost.VERSION, what="smaller batches, or less kept between calls"),
        ),
        promises=(
            Promise(metric="died", value=0.0, tolerance=0.0, at_most=True),
            Promise(metric="failing_part", value=0.0, tolerance=0.0, at_most=True),
        ),
    )


def breaker_open(case: DiagnosisCase) -> Suspect | None:
    """Containers die while they serve, so that a breaker keeps calls away."""
    window = case.window
    refused = window.codes("breaker_open")
    if not (window.died >= 2 or refused) or CallTrouble.FAILING not in case.severity or memory_bound(case) is not None:
        return None
    if window.failed_starts >= 2 and window.failed_starts >= 0.5 * window.starts:
        return None
    return Suspect(
        name="breaker",
        gains={CallTrouble.FAILING: 0.9, CallTrouble.FULL: 0.5, CallTrouble.SLOW: 0.3},
        says=(
            f"Its breaker keeps calls away: {window.died} containers of {case.what} died while they served, and "
            f"{refused} calls were refused after it."
        ),
        evidence=(
            f"the breaker is {window.breaker}; {window.codes(*DEATH_CODES)} calls died with their container",
            f"starts do not fail: {window.failed_starts} of {window.starts}",
        ),
        cures=(
            Cure(
                cost=CureCost.CALLER,
                what="find the call that ends the process in its logs, and mend it",
                command=f"pilotlight logs {case.what.partition('@')[0]}",
                changes={"deaths": 0.0},
            ),
            Cure(cost=CureCost.SETTING, what="roll back to the version before"),
        ),
        promises=(
            Promise(metric="died", value=0.0, tolerance=0.0, at_most=True),
            Promise(metric="failing_part", value=0.0, tolerance=0.0, at_most=True),
        ),
    )


def runs_too_long(case: DiagnosisCase) -> Suspect | None:
    """Calls run past the function's timeout."""
    window = case.window
    late = window.codes("execution_timeout")
    if CallTrouble.FAILING not in case.severity or late < 0.5 * window.codes("execution_timeout", *DEATH_CODES):
        return None
    return Suspect(
        name="timeout",
        gains={CallTrouble.FAILING: 0.8},
        says=f"Its timeout ends calls: {late / max(1, window.arrivals):.0%} of those to {case.what} ran past it.",
        evidence=(
            f"calls that end well take {case.mean_ms:.3g} ms on average, at most 95 of 100 {case.tail_ms:.3g} ms",
        ),
        cures=(
            Cure(
                cost=CureCost.VERSION, what="a longer timeout=, or less work in a call", changes={"timeout_factor": 4.0}
            ),
        ),
        promises=(Promise(metric="failing_part", value=0.0, tolerance=0.0, at_most=True),),
    )
