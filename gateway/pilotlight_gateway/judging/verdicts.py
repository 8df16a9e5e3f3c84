"""What evidence says, as a word, numbers and sentences."""

from __future__ import annotations

from pilotlight_core.model.rollouts.rollout_record import Arm, Verdict
from pilotlight_gateway.judging.evidence import HOLD, ROLL_BACK, Evidence
from pilotlight_gateway.judging.function_evidence import FunctionEvidence

SPLIT_INVALID = 100.0
GREAT = 1e6
VERIFIED_WITHIN = 0.2
"""The part within which times and costs are to be proven, if a rollout is to be called verified."""
UNDER = {
    "crash": "failures in a row",
    "errors": "failures",
    "slow": "calls slower than the old version's p95",
    "latency": "time to run",
    "cost": "GPU time",
    "dear": "calls dearer than 99 of 100 of the old version's",
    "pairs": "GPU time of pairs",
    "answers": "answers of pairs that differ",
    "ttft": "time to the first chunk",
    "itl": "time between chunks",
    "start": "time to start",
    "degraded": "calls that a fallback ran",
}
"""What a guard is about, in words."""


def verdict_of(evidence: Evidence, at: float) -> Verdict:
    """The verdict as it stands."""
    several = len(evidence.functions) > 1
    guards: dict[str, float] = {}
    verified: dict[str, float] = {}
    calls: dict[str, int] = {}
    for name, function in evidence.functions.items():
        before = f"{name}." if several else ""
        guards |= {before + guard: e for guard, e in function.guards().items()}
        verified |= {before + guard: within for guard, within in function.verified().items()}
        for arm, count in function.calls.items():
            calls[arm] = calls.get(arm, 0) + count
    word = word_of(evidence)
    return Verdict(
        word=word,
        evidence=max(evidence.value, evidence.peak) if word == "regressed" else evidence.value,
        guards=guards,
        verified_within=verified,
        sentences=tuple(sentences_of(evidence, word)),
        calls=calls,
        at=at,
    )


def word_of(evidence: Evidence) -> str:
    """`regressed`, `invalid`, `verified` or `undecided`."""
    if evidence.is_regressed:
        return "regressed"
    if evidence.split_e >= SPLIT_INVALID:
        return "invalid"
    functions = evidence.functions.values()
    return "verified" if functions and all(is_verified(function) for function in functions) else "undecided"


def is_verified(function: FunctionEvidence) -> bool:
    """Whether times are proven, and costs if there are any: by live calls or by pairs."""
    verified = function.verified()
    proven = {guard for guard in ("latency", "cost", "pairs") if verified.get(guard, 1.0) <= VERIFIED_WITHIN}
    return "latency" in proven and (not function.amounts["cost"].canary or bool(proven & {"cost", "pairs"}))


def canary_calls(evidence: Evidence) -> int:
    """Compared calls of the canary."""
    return sum(function.calls.get(Arm.CANARY, 0) for function in evidence.functions.values())


def sentences_of(evidence: Evidence, word: str) -> list[str]:
    """Why, with numbers."""
    found = [_head(evidence, word, compared_of(evidence))]
    for name, function in evidence.functions.items():
        found += _of_function(name, function, evidence.is_regressed)
    return found


def compared_of(evidence: Evidence) -> str:
    """What was compared of both versions, in words; "": nothing. Before the ramp there are pairs alone."""
    pairs = sum(function.pairs_seen() for function in evidence.functions.values())
    new = canary_calls(evidence)
    old = sum(sum(function.calls.values()) for function in evidence.functions.values()) - new
    found = [f"{pairs:,} pairs of shadows"] if pairs else []
    if new or old:
        found += [f"{new:,} calls of the new version", f"{old:,} of the old one"]
    return " and ".join((", ".join(found[:-1]), found[-1])) if len(found) > 1 else "".join(found)


def _head(evidence: Evidence, word: str, compared: str) -> str:
    e = evidence.value
    if word == "regressed":
        most = _large(max(e, evidence.peak))
        return (
            f"The new version is worse: E reached {most} (from {ROLL_BACK:.0f} it is rolled back), "
            f"by {compared}. One of a hundred rollouts of an equal version ever comes so far."
        )
    if word == "invalid":
        return f"Calls do not come as they are split, so nothing counted of them means anything: {compared}."
    if not compared:
        return "No call was compared yet, so nothing is known."
    if e >= HOLD:
        return f"E is {e:.1f} after {compared}: from {HOLD:.0f} the rollout does not go on."
    proven = (
        "the new version is proven not to be worse by more than is said below" if word == "verified" else "no alarm"
    )
    return f"E is {e:.2f} after {compared}: {proven}."


def _of_function(name: str, function: FunctionEvidence, regressed: bool) -> list[str]:
    found = []
    guards, verified = function.guards(), function.verified()
    loudest = sorted((e, guard) for guard, e in guards.items() if function.weights[guard] > 0.0)[::-1]
    for e, guard in loudest:
        if e >= HOLD or (regressed and guard == loudest[0][1]):
            found.append(f"{name}: {_about(guard)}: {numbers_of(function, guard)} (its e is {_large(e)}).")
    for guard, within in verified.items():
        found.append(f"{name}: {_about(guard)}: verified within {within:.0%}; {numbers_of(function, guard)}.")
    blind = [guard for guard in ("latency", "cost") if not function.amounts[guard].canary]
    if blind and function.calls:
        found.append(f"{name}: nothing is known of {' and '.join(_about(guard) for guard in blind)} yet.")
    if function.calls:
        found.append(f"{name}: up to {function.tolerance:.1%} slower or dearer is tolerated.")
    if function.left_out:
        reasons = ", ".join(f"{count:,} ({reason})" for reason, count in function.left_out.items())
        found.append(f"{name}: not compared, or in part: {reasons}.")
    return found


def numbers_of(function: FunctionEvidence, guard: str) -> str:
    """What a guard has seen of both sides."""
    if guard == "crash":
        crash = function.crash
        return f"{crash.failures:,} of the new version's calls failed, where {crash.rate:.1%} would be no alarm"
    if guard == "pairs":
        pairs = function.pairs
        effect = "not known yet" if pairs.effect is None else f"{pairs.effect:+.1%}"
        return f"{effect} in {pairs.pairs:,} pairs"
    if (event := function.events.get(guard)) is not None:
        return f"{event.canary:,} of the new version's calls, {event.other:,} of the old one's"
    amount = function.amounts[guard]
    effect = "not known yet" if amount.effect is None else f"{amount.effect:+.1%}"
    kind = "units" if function.is_sticky else "calls"
    return f"{effect}, estimated by {amount.canary:,} {kind} of the new version and {amount.other:,} of the old one"


def _large(e: float) -> str:
    """An e as people read it: beyond a million nobody reads the digits."""
    return f"{e:,.1f}" if e < GREAT / 1_000 else f"{e:,.0f}" if e <= GREAT else f"more than {GREAT:,.0f}"


def _about(guard: str) -> str:
    return UNDER.get(guard, guard)
