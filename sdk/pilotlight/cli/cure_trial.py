"""`pilotlight diagnose --try`: the cheapest cure for a while, and whether its promise was kept.

Only what ends by itself is tried: settings of `pilotlight scale`, which the platform takes back when their time is
over, whatever becomes of this command. Where somebody has said one of them before, nothing is tried, since the end of a
trial gives back what is deployed and not what was said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from pilotlight.cli.output import note
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import BadInput
from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest
from pilotlight_core.model.api.seeing.diagnosis_api import CureInfo, FunctionDiagnosis, PromiseInfo, keeps_promise
from pilotlight_core.model.scaling.scale_bounds import SAID

COUNTS = frozenset({"min_containers", "max_containers", "buffer_containers"})
REVERSIBLE = COUNTS | {"scaledown_window"}
"""Settings that the platform takes back when their time is over."""
SAME = frozenset({"containers"})
"""What a cure says of others beside `max_containers`, which holds it."""
SETTLE_S = 60.0
"""For which containers may start before anything is measured."""
MINUTE_S = 60.0
SHORTEST_S, LONGEST_S = 180.0, 3_600.0
GRACE_S = 60.0
"""After the trial, for this command to take it back before the platform does."""
COUNTED_S = 1.0
"""Until the last calls of a minute are counted everywhere."""
LEAST_CALLS = 30
"""Of fewer nothing is said."""


class TriedPromise(msgspec.Struct, frozen=True, kw_only=True):
    """A promise, and what came of it."""

    promise: PromiseInfo
    before: float | None
    after: float | None
    kept: bool | None
    """None: too little was seen."""


class TrialReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a trial has shown."""

    function: str
    cause: str
    cure: CureInfo
    settings: dict[str, float]
    measured_min: int
    calls: int
    promises: tuple[TriedPromise, ...]

    @property
    def kept(self) -> bool | None:
        """Whether all promises were kept; None: nobody can say."""
        seen = [each.kept for each in self.promises if each.kept is not None]
        return all(seen) if seen else None


@dataclass(frozen=True)
class Clock:
    """Time, which tests make."""

    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def try_cure(function: str, found: FunctionDiagnosis, for_s: float, rate: float | None, clock: Clock) -> TrialReport:
    """Try the first cure of a diagnosis; it is taken back at the end, and if this is interrupted.

    Raises:
        BadInput: there is none, it cannot be undone, or somebody has said the same setting.
    """
    cure, settings = tried_settings(found)
    name = function.partition("@")[0]
    check_unsaid(ask(client().autoscaler.get_bounds(name)), settings)
    began_at = clock.now()
    until_at, minutes = measured_until(began_at, for_s)
    ask(client().autoscaler.change_bounds(name, asked_of(settings, for_s + GRACE_S)))
    try:
        note(f"Trying {cure.what} of {name} for {(until_at - began_at) / MINUTE_S:.1f} min; Ctrl-C takes it back.")
        clock.sleep(until_at + COUNTED_S - began_at)
        after = ask(client().platform.diagnose_function(function, f"{minutes}m", rate))
    finally:
        take_back(name, settings)
    return report_of(found, cure, settings, after, minutes)


def tried_settings(found: FunctionDiagnosis) -> tuple[CureInfo, dict[str, float]]:
    """The first cure, and the settings that it is.

    Raises:
        BadInput: as `try_cure`.
    """
    if not found.cures or not found.promises:
        raise BadInput(f"--try: there is nothing to try. {found.sentence}", field="try")
    cure = found.cures[0]
    others = sorted(cure.changes.keys() - REVERSIBLE - SAME)
    settings = {name: value for name, value in cure.changes.items() if name in REVERSIBLE}
    if others or not settings:
        what = f"it sets {', '.join(others)}" if others else "it is no setting"
        raise BadInput(
            f"--try: {cure.what}: {what}, and that could not be undone. What can is {', '.join(sorted(REVERSIBLE))}.",
            field="try",
        )
    return cure, settings


def check_unsaid(bounds: AutoscalerInfo, settings: Mapping[str, float]) -> None:
    """Refuse to try a setting that somebody has said.

    Raises:
        BadInput: naming it.
    """
    for name in sorted(settings):
        bound = getattr(bounds, name)
        if bound.because.startswith(SAID):
            raise BadInput(
                f"--try: {name}={bound.value:g} of {bounds.function} is held {bound.because}: a trial would end that. "
                f"'pilotlight scale {bounds.function} --reset' gives it up.",
                field="try",
            )


def measured_until(began_at: float, for_s: float) -> tuple[float, int]:
    """When to measure, and over how many whole minutes, none of which begins before containers had time to start."""
    first_at = -(-(began_at + SETTLE_S) // MINUTE_S) * MINUTE_S
    minutes = max(1, int((began_at + for_s - first_at) // MINUTE_S))
    return first_at + minutes * MINUTE_S, min(minutes, 59)


def asked_of(settings: Mapping[str, float], ends_in_s: float) -> AutoscalerRequest:
    """The request that sets them for a while."""
    fields: dict[str, Any] = {name: int(value) if name in COUNTS else value for name, value in settings.items()}
    return AutoscalerRequest(**fields, ends_in_s=ends_in_s)


def take_back(name: str, settings: Mapping[str, float]) -> None:
    """End what was tried; what somebody else has said meanwhile stays."""
    bounds = ask(client().autoscaler.get_bounds(name))
    ours = [setting for setting, value in settings.items() if getattr(bounds, setting).value == value]
    if ours:
        fields: dict[str, Any] = dict.fromkeys(ours)
        ask(client().autoscaler.change_bounds(name, AutoscalerRequest(**fields)))


def report_of(
    before: FunctionDiagnosis, cure: CureInfo, settings: dict[str, float], after: FunctionDiagnosis, minutes: int
) -> TrialReport:
    """What was promised beside what came."""
    is_enough = after.calls >= LEAST_CALLS and after.name not in ("few", "counters")
    promises = []
    for promise in before.promises:
        now = after.metrics.get(promise.metric)
        kept = keeps_promise(promise, now) if is_enough and now is not None else None
        promises.append(TriedPromise(promise=promise, before=before.metrics.get(promise.metric), after=now, kept=kept))
    return TrialReport(
        function=before.function, cause=before.name, cure=cure, settings=settings, measured_min=minutes,
        calls=after.calls, promises=tuple(promises),
    )  # fmt: skip
