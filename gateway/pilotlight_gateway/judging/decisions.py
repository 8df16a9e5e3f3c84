"""How a rollout moves on: what follows from its record, the evidence, and the facts of the platform. Pure.

    planned -> checking -> starting -> pairs -> ramp, step by step -> baking -> promoted
                                 any of these -> rolling_back -> rolled_back;  -> superseded

The driver performs a decision by one compare-and-set of the record, and decides again after a conflict: what a person
has written since wins. The rules are tried in the order of `decide`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import WHOLE, WHY_HELD, Rollout, RolloutState, Verdict
from pilotlight_core.model.rollouts.split import twin_share_of
from pilotlight_gateway.judging.evidence import HOLD, Evidence
from pilotlight_gateway.judging.verdicts import SPLIT_INVALID, canary_calls, verdict_of

NO_CAPACITY_S = 600.0
"""How long a rollout waits for capacity before it is called back."""
PAIRS_S = 3_600.0
"""How long pairs are gathered at most."""
QUIET_S = 600.0
"""How long E is below `HOLD` before a ramp goes on."""
HEARD_S = 5.0
"""How long nodes are listened to before the old version counts as one without containers, and so without calls to lose:
one that starts just now has calls that wait for it."""
DRAIN_S = 900.0
"""How long a rollout rolls back at most: what runs then is left to its timeout."""


BEFORE_CALLS = frozenset({RolloutState.PLANNED, RolloutState.CHECKING, RolloutState.STARTING})


class Action(StrEnum):
    """What the driver does."""

    STAY = "stay"
    MOVE = "move"  # write `RolloutDecision.rollout`
    ROLL_BACK = "roll_back"  # split nothing any more; mark the versions if `marked`
    PROMOTE = "promote"  # deploy the new versions, then end as promoted
    END = "end"  # say that it is over, in `RolloutDecision.state`


class DecisionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver knows beside the record and the evidence."""

    checks: str | None = None
    """Of schemas, policy and signature: None, they are not done; "", they are passed; else why not."""
    refused: str = ""
    """Why a policy, or a key, that has changed since refuses the new version by now; "": none does."""
    is_ready: bool = False
    """Whether the canary and its twin have the containers that they start with."""
    has_containers: bool = True
    """Whether the old versions have any, ready or not, as far as nodes have said."""
    has_shadows: bool = False
    """Whether pairs of shadows can be made of a function that takes part."""
    carried: int = WHOLE
    """The share that ready capacity of the canary, and of its twin, carries, in basis points."""
    gate: bool | None = None
    """What the gate says to the next step; None: nothing yet."""
    breaker: str = ""
    """The function of which the canary's breaker is open; "": none."""
    superseded: str = ""
    """Why what is compared is not what is deployed any more; "": it is."""
    calls_per_hour: float = 0.0
    """Of all functions that take part."""
    is_promoted: bool = False
    """Whether the new versions are what is deployed."""
    is_drained: bool = False
    """Whether nothing of the canary and the twin runs any more."""


class RolloutNews(NamedTuple):
    """An event to tell."""

    kind: str
    """`rollout.step | held | promoted | rolled_back | superseded`."""
    says: str


class RolloutDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done."""

    action: Action = Action.STAY
    rollout: Rollout | None = None
    """With `MOVE`: the rollout after it."""
    reason: str = ""
    marked: bool = False
    """With `ROLL_BACK`: whether the new versions are refused from now on."""
    state: RolloutState | None = None
    """With `END`."""
    verdict: Verdict = Verdict()
    news: tuple[RolloutNews, ...] = ()


def decide(evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts) -> RolloutDecision:
    """What to do now, at the instant `at` in unix seconds."""
    verdict = verdict_of(evidence, at)
    if not rollout.is_running:
        return RolloutDecision(verdict=verdict)
    if rollout.state is RolloutState.ROLLING_BACK:
        if facts.is_drained or at - rollout.since >= DRAIN_S:
            return _ended(RolloutState.ROLLED_BACK, rollout.reason, rollout.verdict)
        return RolloutDecision(verdict=verdict)
    if facts.is_promoted:
        return _ended(RolloutState.PROMOTED, rollout.reason or "promoted", verdict)
    if facts.superseded:
        return _ended(RolloutState.SUPERSEDED, facts.superseded, verdict)
    if rollout.frozen:
        return _held(rollout, at, "frozen", verdict)
    if facts.breaker:
        return _rolled_back(f"The breaker of {facts.breaker} is open: the new version keeps failing.", verdict)
    if verdict.word == "regressed" and is_judged(evidence, rollout):
        return _rolled_back(" ".join(verdict.sentences[:2]), verdict)
    if rollout.paused_by:
        return RolloutDecision(verdict=verdict)
    if rollout.held == "no_capacity" and at - rollout.held_since >= NO_CAPACITY_S and _is_short(rollout, facts):
        return _rolled_back(f"No capacity for {NO_CAPACITY_S:.0f} s: no_capacity", verdict, marked=False)
    return _next(evidence, rollout, at, facts, verdict)


def _begun(evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts, verdict: Verdict) -> RolloutDecision:
    """Before any call goes to the new version."""
    if rollout.state is RolloutState.PLANNED:
        return _moved(rollout, at, RolloutState.CHECKING, verdict)
    if rollout.state is RolloutState.CHECKING:
        if facts.checks is None:
            return RolloutDecision(verdict=verdict)
        if facts.checks:
            return _rolled_back(facts.checks, verdict, marked=False)
        return _moved(rollout, at, RolloutState.STARTING, verdict)
    if not facts.has_containers and at - rollout.since < HEARD_S:
        return RolloutDecision(verdict=verdict)
    if not facts.is_ready:
        return _held(rollout, at, "no_capacity", verdict)
    if facts.has_shadows and rollout.terms.pairs > 0 and is_judged(evidence, rollout):
        return _moved(rollout, at, RolloutState.PAIRS, verdict)
    return _stepped(evidence, rollout, at, facts, verdict)


def _next(evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts, verdict: Verdict) -> RolloutDecision:
    """Where a rollout goes from its state, if nothing is against it."""
    if rollout.state in BEFORE_CALLS:
        return _begun(evidence, rollout, at, facts, verdict)
    if facts.refused:  # nothing is ended for it, and nothing goes on
        return _held(rollout, at, "policy", verdict, facts.refused)
    if rollout.state is RolloutState.PAIRS:
        return _after_pairs(evidence, rollout, at, facts, verdict)
    if rollout.share < _target(rollout):
        why = against(evidence, at) if is_judged(evidence, rollout) else ""
        return _held(rollout, at, why, verdict) if why else _raised(rollout, at, facts, verdict)
    if why := why_not_on(evidence, rollout, at, facts):
        return _held(rollout, at, why, verdict)
    if rollout.state is RolloutState.BAKING:
        return _baked(evidence, rollout, at, verdict)
    return _stepped(evidence, rollout, at, facts, verdict)


def is_judged(evidence: Evidence, rollout: Rollout) -> bool:
    """Whether there is anything to compare, and it is to be."""
    return bool(evidence.functions) and not rollout.terms.skip_judging


# -- what is against it ------------------------------------------------------------------------------------------------


def why_not_on(evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts) -> str:
    """Why a step, or baking, is not left: a word, `waiting` if it is time or calls alone; "": it is."""
    terms = rollout.terms
    baking = rollout.state is RolloutState.BAKING
    judged = is_judged(evidence, rollout)
    if judged and (why := against(evidence, at)):
        return why
    if at - rollout.since < (terms.bake_s if baking else terms.every_s):
        return "waiting"
    if not baking and judged:
        hourly = int(facts.calls_per_hour * rollout.share / WHOLE)
        if canary_calls(evidence) - rollout.calls_before < max(1, min(terms.calls, hourly or terms.calls)):
            return "calls"
    if terms.gate and not facts.gate:
        return "gate"
    return ""


def against(evidence: Evidence, at: float) -> str:
    """What of the evidence is against going on, as a word; "": nothing."""
    if evidence.split_e >= SPLIT_INVALID:
        return "invalid_split"
    if evidence.value >= HOLD or (evidence.high_at and at - evidence.high_at < QUIET_S):
        return "evidence"
    return ""


def _is_short(rollout: Rollout, facts: DecisionFacts) -> bool:
    """Whether it is still capacity that it lacks."""
    if rollout.state is RolloutState.STARTING:
        return not facts.is_ready
    return rollout.share < _target(rollout) and facts.carried < _target(rollout)


# -- where it goes -----------------------------------------------------------------------------------------------------


def _target(rollout: Rollout) -> int:
    """The canary's share at its step, once capacity carries it."""
    terms = rollout.terms
    if not 0 <= rollout.step < len(terms.steps):
        return 0
    step = terms.steps[rollout.step]
    return min(step, WHOLE - terms.hold_back) if rollout.state is RolloutState.BAKING or step == WHOLE else step


def _with_share(rollout: Rollout, facts: DecisionFacts) -> Rollout:
    """As much of its target as capacity carries; a share never falls."""
    share = max(rollout.share, min(_target(rollout), facts.carried))
    twin = twin_share_of(share) if rollout.terms.twin and rollout.twins else 0
    return replace(rollout, share=share, twin_share=twin)


def _stepped(
    evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts, verdict: Verdict
) -> RolloutDecision:
    """The next step; the last one is baking."""
    steps = rollout.terms.steps
    step = min(rollout.step + 1, len(steps) - 1)
    if rollout.state is RolloutState.RAMP and rollout.step >= len(steps) - 1:
        return _moved(rollout, at, RolloutState.BAKING, verdict)
    state = RolloutState.BAKING if steps[step] == WHOLE else RolloutState.RAMP
    after = replace(
        rollout, state=state, step=step, since=at, held="", held_since=0.0, verdict=verdict,
        calls_before=canary_calls(evidence),
    )  # fmt: skip
    after = _with_share(after, facts)
    after = _short(after, at) if after.share < _target(after) else after
    says = f"Step {step + 1} of {len(steps)}: {after.share / WHOLE:.2%} of calls go to the new version."
    return RolloutDecision(
        action=Action.MOVE, rollout=after, verdict=verdict, news=(RolloutNews("rollout.step", says),)
    )


def _raised(rollout: Rollout, at: float, facts: DecisionFacts, verdict: Verdict) -> RolloutDecision:
    """More of the step's share, as capacity has become ready; the step's time begins with all of it."""
    after = _with_share(rollout, facts)
    if after.share >= _target(after):
        after = replace(after, since=at, held="", held_since=0.0)
        return RolloutDecision(action=Action.MOVE, rollout=after, verdict=verdict)
    if after.share > rollout.share:
        return RolloutDecision(action=Action.MOVE, rollout=_short(after, at), verdict=verdict)
    return _held(rollout, at, "no_capacity", verdict)


def _short(rollout: Rollout, at: float) -> Rollout:
    """Held for want of capacity, from now on."""
    return replace(rollout, held="no_capacity", held_since=at)


def _after_pairs(
    evidence: Evidence, rollout: Rollout, at: float, facts: DecisionFacts, verdict: Verdict
) -> RolloutDecision:
    """Pairs are enough, or have had their time."""
    made = [function.pairs.pairs for function in evidence.functions.values() if "pairs" in function.weights]
    if why := against(evidence, at):
        return _held(rollout, at, why, verdict)
    if made and min(made) < rollout.terms.pairs and at - rollout.since < PAIRS_S:
        return _held(rollout, at, "waiting", verdict)
    return _stepped(evidence, rollout, at, facts, verdict)


def _baked(evidence: Evidence, rollout: Rollout, at: float, verdict: Verdict) -> RolloutDecision:
    """The end: what is not worse is promoted; without proof, what was asked for; without any call, nothing."""
    word = verdict.word
    judged = is_judged(evidence, rollout)
    if judged and word != "verified":
        if not canary_calls(evidence):
            return _held(rollout, at, "calls", verdict)
        if rollout.terms.on_undecided == "hold":
            return _held(rollout, at, "undecided", verdict)
        if rollout.terms.on_undecided == "rollback":
            return _rolled_back("Nothing was proven until the end: undecided", verdict, marked=False)
        word = "unverified"
    reason = word if judged else "unjudged"
    return RolloutDecision(action=Action.PROMOTE, reason=reason, verdict=verdict, state=RolloutState.PROMOTED)


def _moved(rollout: Rollout, at: float, state: RolloutState, verdict: Verdict) -> RolloutDecision:
    after = replace(rollout, state=state, since=at, held="", held_since=0.0, verdict=verdict)
    says = f"The rollout is {state}."
    return RolloutDecision(
        action=Action.MOVE, rollout=after, verdict=verdict, news=(RolloutNews("rollout.step", says),)
    )


def _held(rollout: Rollout, at: float, why: str, verdict: Verdict, says: str = "") -> RolloutDecision:
    """It stays where it is, for the word `why`, of which `says` is a sentence of its own.

    What is only a matter of time is not written: each revision is read by every gateway.
    """
    held = "" if why == "waiting" else why
    if held == rollout.held:
        return RolloutDecision(verdict=verdict)
    after = replace(rollout, held=held, held_since=at if held else 0.0, verdict=verdict)
    says = f"The rollout does not go on: {says or WHY_HELD.get(why, why) + '.'}"
    news = (RolloutNews("rollout.held", says),) if held else ()
    return RolloutDecision(action=Action.MOVE, rollout=after, reason=held, verdict=verdict, news=news)


def _rolled_back(reason: str, verdict: Verdict, *, marked: bool = True) -> RolloutDecision:
    news = (RolloutNews("rollout.rolled_back", f"Rolled back: {reason}"),)
    return RolloutDecision(action=Action.ROLL_BACK, reason=reason, marked=marked, verdict=verdict, news=news)


def _ended(state: RolloutState, reason: str, verdict: Verdict) -> RolloutDecision:
    kinds = {RolloutState.PROMOTED: "rollout.promoted", RolloutState.SUPERSEDED: "rollout.superseded"}
    news = (RolloutNews(kinds[state], f"The rollout is {state}: {reason}"),) if state in kinds else ()
    return RolloutDecision(action=Action.END, state=state, reason=reason, verdict=verdict, news=news)
