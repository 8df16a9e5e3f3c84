"""What evidence comes to, in a word and in sentences. Pure."""

from __future__ import annotations

import math

from pilotlight_core.model.rollouts.rollout_record import Arm, Verdict
from pilotlight_gateway.judging.evidence import Evidence, Sums

ROLL_BACK = 100.0
HOLD = 10.0
PROVEN = 20.0
MEANING = {
    "crash": "calls of the new version fail",
    "errors": "calls fail more often",
    "slow": "more calls are slower than nineteen of twenty were",
    "latency": "calls run longer",
    "cost": "calls cost more GPU time",
    "dear": "more calls are dearer than ninety-nine of a hundred were",
    "pairs": "the same inputs cost more GPU time",
    "first_token": "the first token comes later",
    "token_gap": "tokens come further apart",
}


def verdict_of(evidence: Evidence, at: float) -> Verdict:
    """What is known at the unix second `at`. No data is never success: without calls it is `undecided`."""
    total, guards = evidence.total, evidence.guards()
    proven = {name: within for name, proofs in evidence.proofs.items() if (within := _proven(proofs)) is not None}
    word = "undecided"
    if evidence.split.e >= ROLL_BACK:
        word = "invalid"
    elif total >= ROLL_BACK:
        word = "regressed"
    elif len(proven) == len(evidence.proofs) and total < HOLD:
        word = "verified"
    return Verdict(
        word=word,
        evidence=_shown(total),
        guards={guard: _shown(value) for guard, value in guards.items()},
        verified_within=proven,
        sentences=tuple(_sentences(evidence, word, total, guards, proven)),
        calls={arm: sums.calls for arm, sums in evidence.sums.items()},
        at=at,
    )


def _proven(proofs: list) -> float | None:  # type: ignore[type-arg]
    return next((proof.within for proof in proofs if proof.e >= PROVEN), None)


def _shown(value: float) -> float:
    """Three digits are enough to read, and a record stays small."""
    return float(f"{min(value, 1e12):.3g}")


def _sentences(
    evidence: Evidence, word: str, total: float, guards: dict[str, float], proven: dict[str, float]
) -> list[str]:
    new, old = _of(evidence, Arm.CANARY), _old(evidence)
    found = [f"{new.calls} calls of the new version were compared with {old.calls} of the old."]
    if word == "invalid":
        found.append(
            "The calls were not split as they should have been, so nothing that is counted of them means anything."
        )
    guard, value = max(guards.items(), key=lambda one: one[1] * evidence.weights[one[0]])
    if total >= HOLD:
        found.append(
            f"E is {total:.3g}, mostly because {MEANING.get(guard, guard + ' is worse')} ({guard}: e = {value:.3g}). "
            f"From {HOLD:g} the rollout holds, from {ROLL_BACK:g} it rolls back: chance does so once in a hundred "
            "rollouts at most."
        )
    else:
        found.append(f"E is {total:.3g}: nothing says that the new version is worse (it holds from {HOLD:g}).")
    found += _effects(new, old)
    if evidence.pairs_ran:
        found.append(f"{evidence.pairs_ran} inputs were run by both versions in turn. {_differing(evidence)}")
    for name, within in proven.items():
        found.append(f"It is proven that {name} is less than {within:.0%} worse.")
    if word == "undecided" and not new.calls and not evidence.pairs_ran:
        found.append("Without calls nothing can be said.")
    return found


def _effects(new: Sums, old: Sums) -> list[str]:
    found = []
    if new.failed or old.failed:
        found.append(
            f"{new.failed} of {new.calls} calls of the new version failed by its fault, {old.failed} of {old.calls} of "
            "the old."
        )
    if new.measured >= 10 and old.measured >= 10:
        latency = math.exp(new.latency / new.measured - old.latency / old.measured) - 1.0
        cost = math.exp(new.cost / new.measured - old.cost / old.measured) - 1.0
        found.append(f"For inputs of one size it ran {latency:+.1%} longer and cost {cost:+.1%} on average.")
    return found


def _differing(evidence: Evidence) -> str:
    new, old = (evidence.differing.get(arm, 0) for arm in (Arm.CANARY, Arm.TWIN))
    return f"{new} answers of the new version differed from the caller's, and {old} of the old version's own."


def _of(evidence: Evidence, arm: Arm) -> Sums:
    return evidence.sums.get(arm, Sums())


def _old(evidence: Evidence) -> Sums:
    """What the new version is compared with: its twin, or without one all of the old."""
    return _of(evidence, Arm.TWIN) if Arm.TWIN in evidence.sums else _of(evidence, Arm.CONTROL)
