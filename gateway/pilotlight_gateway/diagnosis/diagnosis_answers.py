"""Diagnoses as the API tells them: to operators with names, to tenants without those of others. Pure."""

from __future__ import annotations

from pilotlight_core.model.api.seeing.diagnosis_api import (
    CauseInfo,
    CureInfo,
    DiagnosisLine,
    FunctionDiagnosis,
    PromiseInfo,
)
from pilotlight_gateway.diagnosis.bottlenecks import Diagnosis
from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow
from pilotlight_gateway.diagnosis.measured_metrics import measured_metrics
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, Promise, Suspect
from pilotlight_gateway.tenancy.shown_names import shown_gateways

OPERATORS_COMMANDS = ("pilotlight quota", "pilotlight placement")
"""Only an operator may run these."""


def diagnosis_info(
    found: Diagnosis, window: DiagnosisWindow, *, operator: bool, silent: tuple[str, ...] = ()
) -> FunctionDiagnosis:
    """The whole diagnosis of one function."""
    return FunctionDiagnosis(
        function=window.function,
        window_s=round(window.seconds, 1),
        calls=window.completed,
        name=found.name,
        sentence=(found.for_operator if operator else "") or found.says,
        trouble=found.trouble.value if found.trouble is not None else "",
        confidence=found.confidence,
        gain=round(found.gain, 2),
        evidence=found.evidence,
        cures=tuple(_cure_info(cure, found.gain, operator=operator) for cure in found.cures),
        promises=tuple(map(_promise_info, found.promises)),
        headroom=round(found.headroom, 2) if found.headroom is not None else None,
        next=_cause_info(found.then, operator=operator) if found.then is not None else None,
        others=tuple(_cause_info(other, operator=operator) for other in found.others),
        metrics={name: _rounded(value) for name, value in measured_metrics(window).items()},
        silent=tuple(shown_gateways(silent, operator=operator)),
    )


def diagnosis_line(found: Diagnosis, window: DiagnosisWindow, *, operator: bool) -> DiagnosisLine:
    """The same in a sentence."""
    return DiagnosisLine(
        function=window.function,
        name=found.name,
        sentence=(found.for_operator if operator else "") or found.says,
        calls=window.completed,
        confidence=found.confidence,
        first_cure=found.cures[0].what if found.cures else "",
    )


def _cause_info(cause: Suspect, *, operator: bool) -> CauseInfo:
    gain = cause.gains.get(CallTrouble.SLOW, max(cause.gains.values(), default=0.0))
    return CauseInfo(
        name=cause.name,
        sentence=(cause.for_operator if operator else "") or cause.says,
        evidence=cause.evidence,
        cures=tuple(_cure_info(cure, gain, operator=operator) for cure in cause.cures),
        promises=tuple(map(_promise_info, cause.promises)),
        gain=round(gain, 2),
    )


def _cure_info(cure: Cure, gain: float, *, operator: bool) -> CureInfo:
    """What only an operator can do is a wish to a tenant: without a command, which would name others, too."""
    shown = operator or not cure.command.startswith(OPERATORS_COMMANDS)
    own = cure.gain if cure.gain is not None else gain
    return CureInfo(
        cost=cure.cost.name.lower(),
        what=cure.what,
        command=cure.command if shown else "",
        changes={name: _rounded(value) for name, value in cure.changes.items()},
        gain=round(own, 2),
    )


def _promise_info(promise: Promise) -> PromiseInfo:
    return PromiseInfo(
        metric=promise.metric, value=_rounded(promise.value), tolerance=promise.tolerance, at_most=promise.at_most
    )


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
