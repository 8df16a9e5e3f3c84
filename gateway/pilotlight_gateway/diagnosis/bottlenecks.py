"""The procedure that names what bounds a function.

0. Do the counters add up? If not, that is the answer: everything else would be a guess.
1. Is anything wrong? If not, the nearest limit and what is left to it.
2. Each cause whose constraint binds is a suspect. What its first action would change is computed on the calls that were
   seen, one by one, so its gain is the part of the trouble that goes with it.
3. The largest gain wins; of equal ones the cheapest first action. Below `LEAST_GAIN` nothing is named, unless two
   together explain most of it.
4. The same again on the calls as they would be then: what comes next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from pilotlight_gateway.diagnosis import (
    batch_causes,
    caller_causes,
    capacity_causes,
    engine_causes,
    failure_causes,
    path_causes,
)
from pilotlight_gateway.diagnosis.call_samples import changed, hurt_part, mean_total, tail_ms
from pilotlight_gateway.diagnosis.diagnosis_case import DiagnosisCase, case_of
from pilotlight_gateway.diagnosis.diagnosis_window import STAGES, DiagnosisWindow
from pilotlight_gateway.diagnosis.operational_laws import LEAST_CALLS, broken_laws
from pilotlight_gateway.diagnosis.suspects import CallTrouble, Cure, Promise, Suspect

HYPOTHESES: tuple[Callable[[DiagnosisCase], Suspect | None], ...] = (
    failure_causes.crash_loop,  # never a lack of capacity
    failure_causes.memory_bound,
    failure_causes.breaker_open,
    failure_causes.runs_too_long,
    path_causes.gateway_bound,
    batch_causes.batch_starved,
    capacity_causes.placement_bound,
    caller_causes.noisy_neighbour,
    caller_causes.jobs_bound,
    path_causes.cpu_bound,
    capacity_causes.gpu_bound,
    capacity_causes.cold_bound,
    capacity_causes.flapping,
    batch_causes.batches_wait,
    batch_causes.batches_too_large,
    path_causes.payload_bound,
    capacity_causes.burst_bound,
    capacity_causes.slice_too_small,
    caller_causes.quota_bound,
    caller_causes.budget_bound,
    caller_causes.slow_reader,
    caller_causes.client_bound,
    engine_causes.kv_bound,
    engine_causes.prompts_block,
    engine_causes.steps_too_wide,
    engine_causes.step_too_slow,
    engine_causes.engine_full,
)
"""All causes, those first that explain others away where gain and cost are equal."""
LEAST_TOKENS = 300
"""Of an engine: of fewer nothing can be said."""
LEAST_GAIN = 0.3
PAIR_GAIN = 0.5
"""Of two causes together, each of which is too little alone."""
LEFT = 0.2
"""The part of a trouble that has to be left for another cause to be named."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """What bounds a function, or that nothing does."""

    name: str
    """Of the cause; "nothing", "counters" (they do not add up), "few" (calls), or "unknown"."""
    says: str
    trouble: CallTrouble | None = None
    confidence: float = 0.0
    """0 to 1: how much of the trouble is explained, and by how many calls."""
    gain: float = 0.0
    evidence: tuple[str, ...] = ()
    cures: tuple[Cure, ...] = ()
    promises: tuple[Promise, ...] = ()
    headroom: float | None = None
    """How many times the present load the nearest limit allows; None: not known."""
    then: Suspect | None = None
    """What bounds it next, once the first action has been taken."""
    others: tuple[Suspect, ...] = ()
    """Of its other troubles."""
    for_operator: str = ""

    @property
    def is_bottleneck(self) -> bool:
        return self.name not in ("nothing", "counters", "few", "unknown")


def diagnose(window: DiagnosisWindow, tenant: str = "") -> Diagnosis:
    """What bounds the function of a window; with `tenant`, the calls of that caller."""
    if broken := broken_laws(window):
        return Diagnosis(
            name="counters",
            says=f"The counters of this window do not add up: {broken[0]}.",
            evidence=broken,
            confidence=1.0,
        )
    case = case_of(window, tenant)
    tokens = window.engine.tokens_per_s * window.seconds if window.engine is not None else 0.0
    says_enough = window.ended >= LEAST_CALLS or window.failed_starts >= 2 or tokens >= LEAST_TOKENS
    if not says_enough and not _is_stuck(window):
        return _few(window)
    if not case.severity and window.completed < LEAST_CALLS and tokens < LEAST_TOKENS:
        return _few(window)
    if not case.severity:
        return _healthy(case)
    named = [(trouble, found) for trouble in _by_severity(case) if (found := _named(case, trouble)) is not None]
    if not named:
        return _unknown(case)
    trouble, first = named[0]
    others = {found.name: found for _, found in named[1:] if found.name != first.name}
    return Diagnosis(
        name=first.name,
        says=first.says,
        trouble=trouble,
        gain=first.gains.get(trouble, 0.0),
        confidence=_confidence(first.gains.get(trouble, 0.0), window),
        evidence=first.evidence,
        cures=first.cures,
        promises=first.promises,
        then=_next(case, first),
        others=tuple(others.values()),
        for_operator=first.for_operator,
    )


def _few(window: DiagnosisWindow) -> Diagnosis:
    failed = ", ".join(f"{count} {code}" for code, count in sorted(window.failed.items(), key=lambda kv: -kv[1])[:3])
    besides = f", besides {failed}" if failed else ""
    return Diagnosis(
        name="few",
        says=(
            f"Only {window.completed} calls of {window.function} ended well in {window.seconds:.0f} s{besides}: "
            "that says nothing."
        ),
    )


def _is_stuck(window: DiagnosisWindow) -> bool:
    """Whether calls come and hardly any ends, so that few ends say much."""
    return window.arrivals >= LEAST_CALLS and window.shortage_part >= 0.5


def _by_severity(case: DiagnosisCase) -> list[CallTrouble]:
    return sorted(case.severity, key=lambda trouble: -case.severity[trouble])


def suspects(case: DiagnosisCase) -> list[Suspect]:
    """All causes whose constraint binds."""
    found = (hypothesis(case) for hypothesis in HYPOTHESES)
    return [suspect for suspect in found if suspect is not None]


def _named(case: DiagnosisCase, trouble: CallTrouble) -> Suspect | None:
    found = suspects(case)
    best = _best(found, trouble)
    if best is not None:
        return best
    return _pair(case, found) if trouble is CallTrouble.SLOW else None


def _best(found: Iterable[Suspect], trouble: CallTrouble) -> Suspect | None:
    ranked = sorted(found, key=lambda each: (-round(each.gains.get(trouble, 0.0), 1), each.first_cost))
    return ranked[0] if ranked and ranked[0].gains.get(trouble, 0.0) >= LEAST_GAIN else None


def _pair(case: DiagnosisCase, found: Sequence[Suspect]) -> Suspect | None:
    """The first of two causes that explain together what neither does alone."""
    excess = max(case.tail_ms - case.level_ms, 0.05 * case.level_ms)
    best: tuple[float, Suspect] | None = None
    changes = [(each, each.change) for each in found if each.change is not None]
    for (one, first), (other, second) in combinations(changes, 2):
        then = tail_ms(changed(changed(case.samples, first), second))
        gain = (case.tail_ms - then) / excess
        if gain >= PAIR_GAIN and (best is None or gain > best[0]):
            best = (gain, max(one, other, key=lambda each: each.gains.get(CallTrouble.SLOW, 0.0)))
    return best[1] if best is not None else None


def _next(case: DiagnosisCase, first: Suspect) -> Suspect | None:
    """What bounds the calls that are still slow after the first action."""
    if first.change is None or CallTrouble.SLOW not in case.severity:
        return None
    then = changed(case.samples, first.change)
    left = tail_ms(then) - case.level_ms
    if left <= LEFT * (case.tail_ms - case.level_ms) or left <= 0:
        return None
    after = DiagnosisCase(case.window, then, {CallTrouble.SLOW: hurt_part(then, case.level_ms)})
    return _best((each for each in suspects(after) if each.name != first.name), CallTrouble.SLOW)


def _confidence(gain: float, window: DiagnosisWindow) -> float:
    seen = max(4, window.ended, window.starts)
    return round(min(0.99, gain) * (1 - 1 / math.sqrt(seen)), 2)


def _healthy(case: DiagnosisCase) -> Diagnosis:
    window = case.window
    limits = [(case.devices if window.on_gpu else "its containers", case.rho)]
    if window.loop_part is not None:
        limits.append(("the gateway's thread", case.loop))
    if window.link_part is not None:
        limits.append(("the link", case.link))
    if window.engine is not None and window.engine.asked_tokens_per_s:
        limits = [("the gaps between tokens", window.engine.gap_ms / window.engine.gap_level_ms)]
    what, part = max(limits, key=lambda each: each[1])
    whose = "" if window.level_named else ", which it does not name itself"
    says = (
        f"Nothing is bound: 95 of 100 calls to {case.what} take at most {window.p95_ms or case.tail_ms:.0f} ms of "
        f"{case.level_ms:.0f}{whose}, and the nearest limit is {what}, at {part:.0%}."
    )
    if window.engine is not None:
        engine = window.engine
        says = (
            f"Nothing is bound: first tokens of {case.what} come within {engine.first_token_ms:.0f} ms of "
            f"{engine.first_token_level_ms:.0f}, next ones within {engine.gap_ms:.0f} of {engine.gap_level_ms:.0f}."
        )
    return Diagnosis(name="nothing", says=says, headroom=1 / max(part, 1e-3), confidence=_confidence(0.99, window))


def _unknown(case: DiagnosisCase) -> Diagnosis:
    window = case.window
    worst = _by_severity(case)[0]
    if worst is not CallTrouble.SLOW or not case.samples:
        codes = ", ".join(f"{count} {code}" for code, count in sorted(window.failed.items(), key=lambda kv: -kv[1])[:3])
        what = f"calls fail ({codes})" if codes else "the wanted rate is not reached"
        return Diagnosis(
            name="unknown",
            trouble=worst,
            says=f"Not named: {what} to {case.what}, and no known cause explains it.",
        )
    top = max(range(len(STAGES)), key=lambda stage: case.means[stage])
    return Diagnosis(
        name="unknown",
        trouble=worst,
        says=(
            f"Not named: {STAGES[top].replace('_', ' ')} is the largest stage of {case.what}, "
            f"{case.means[top] / max(1e-9, mean_total(case.samples)):.0%} of its time, and no known cause explains "
            "half of what is too much."
        ),
        evidence=tuple(
            f"{suspect.name} would be {max(suspect.gains.values(), default=0):.0%} of it" for suspect in suspects(case)
        ),
    )
