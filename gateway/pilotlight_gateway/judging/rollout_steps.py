"""The next step of a rollout: it holds, goes on, rolls back or is promoted. A plain function of what is known.

    planned -> checking -> starting -> pairs -> ramp -> baking -> promoted
                              |          |        |        |
                              +----------+--------+--------+--> rolling_back -> rolled_back

A person's word goes first, whatever is held or paused; a person's promotion is never undone here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from pilotlight_core.model.rollouts.capacity import share_carried
from pilotlight_core.model.rollouts.rollout_record import WHOLE, Rollout, RolloutState, Verdict
from pilotlight_core.model.rollouts.split import twin_share_of
from pilotlight_gateway.judging.verdicts import HOLD, ROLL_BACK

CAPACITY_S = 600.0
"""So long a rollout waits for containers, then it goes back without a mark on its version."""
PAIRS_S = 600.0
QUIET_S = 3_600.0
"""So long a step waits for the calls that it should have; a function that nobody calls is not waited for longer."""
CALM_S = 600.0
"""So long E must have stayed below 10 before a ramp that held goes on."""
DRAIN_S = 300.0


class RolloutFacts(NamedTuple):
    """What the rest of the platform says."""

    ready: Mapping[str, int]
    """Containers that take calls, by version."""
    compared: int = 0
    """Calls of the canary that were compared."""
    pairs: int = 0
    why_no_pairs: str = ""
    breaker: str = ""
    """Why calls of the canary are refused altogether; "": they are not."""
    gate: bool | None = None
    """What the gate says of the next step; None: it was not asked, or has not answered."""
    is_drained: bool = False
    """Whether nothing of the canary runs any more."""


class RolloutStep(NamedTuple):
    """What is to change."""

    rollout: Rollout
    event: str = ""
    """Of `rollout.{event}`; "": nothing that people are told."""
    said: str = ""
    marks: bool = False
    """Whether the canary's versions are withdrawn: refused until somebody says --retry."""
    promotes: bool = False
    """Whether the canary's versions are to be deployed: first that, then this change."""


def next_step(rollout: Rollout, verdict: Verdict, facts: RolloutFacts, at: float) -> RolloutStep | None:
    """What is to change at the unix second `at`; None: nothing."""
    if not rollout.is_running:
        return None
    if rollout.state is RolloutState.ROLLING_BACK:
        return _after_rollback(rollout, facts, at)
    if rollout.wanted == "promote":
        return _promoted(rollout, at, "promoted by hand")
    if (alarm := _alarm(rollout, verdict, facts, at)) is not None:
        return alarm
    rollout, warned = _warned(rollout, verdict, at)
    match rollout.state:
        case RolloutState.PLANNED:
            step = RolloutStep(_in_state(rollout, RolloutState.CHECKING, at))
        case RolloutState.CHECKING:
            step = RolloutStep(_in_state(rollout, RolloutState.STARTING, at), "started", "its versions are checked")
        case RolloutState.STARTING:
            found = _from_start(rollout, facts, at)
            step = found if found is not None else RolloutStep(rollout)
        case RolloutState.PAIRS:
            found = _from_pairs(rollout, verdict, facts, at)
            step = found if found is not None else RolloutStep(rollout)
        case _:
            found = _from_ramp(rollout, verdict, facts, at)
            step = found if found is not None else RolloutStep(rollout)
    return step if step.rollout is not rollout or warned or step.promotes else None


def _alarm(rollout: Rollout, verdict: Verdict, facts: RolloutFacts, at: float) -> RolloutStep | None:
    """Whether it is to go back, from whatever state."""
    if facts.breaker:
        return _back(rollout, at, f"calls of the new version are refused: {facts.breaker}", marks=True)
    if verdict.evidence < ROLL_BACK or rollout.terms.skip_judging:
        return None
    if rollout.frozen:
        return _held(rollout, "regressed, and it is frozen", at)
    return _back(rollout, at, " ".join(verdict.sentences) or "the new version is worse", marks=True)


def _warned(rollout: Rollout, verdict: Verdict, at: float) -> tuple[Rollout, bool]:
    """The rollout with the instant at which E was last high, told once a minute at most."""
    if verdict.evidence < HOLD or at - rollout.warned_at < 60.0:
        return rollout, False
    return replace(rollout, warned_at=at), True


def _from_start(rollout: Rollout, facts: RolloutFacts, at: float) -> RolloutStep | None:
    if rollout.terms.twin and not rollout.twins.keys() >= rollout.canary.keys():
        return _late(rollout, "no_twin", at)
    if _share_now(rollout, rollout.terms.steps[0], facts) <= 0:
        return _late(rollout, "no_capacity", at)
    if rollout.paused_by:
        return _held(rollout, "paused", at)
    if rollout.terms.pairs and not facts.why_no_pairs and rollout.terms.twin:
        gathers = f"both versions run the inputs of {rollout.terms.pairs} calls in turn"
        return RolloutStep(_in_state(rollout, RolloutState.PAIRS, at), "step", gathers)
    return _at_step(rollout, 0, facts, at)


def _late(rollout: Rollout, why: str, at: float) -> RolloutStep | None:
    if at - rollout.since >= CAPACITY_S:
        return _back(rollout, at, f"{why}: its containers were not ready within {CAPACITY_S:g} s", marks=False)
    return _held(rollout, why, at)


def _from_pairs(rollout: Rollout, verdict: Verdict, facts: RolloutFacts, at: float) -> RolloutStep | None:
    if rollout.paused_by:
        return _held(rollout, "paused", at)
    if facts.pairs < rollout.terms.pairs and at - rollout.since < PAIRS_S:
        return None
    if (why := _why_held(rollout, verdict, at)) is not None:
        return _held(rollout, why, at)
    return _at_step(rollout, 0, facts, at)


def _from_ramp(rollout: Rollout, verdict: Verdict, facts: RolloutFacts, at: float) -> RolloutStep | None:
    if rollout.paused_by:
        return _held(rollout, "paused", at)
    if (why := _why_held(rollout, verdict, at)) is not None:
        return _held(rollout, why, at)
    aim = _aim(rollout, rollout.step)
    share = _share_now(rollout, aim, facts)
    if share > rollout.share:
        return RolloutStep(_with_share(_released(rollout), share))
    if rollout.share < aim:
        return _held(rollout, "no_capacity", at)
    if rollout.state is RolloutState.BAKING:
        return _from_baking(rollout, verdict, at)
    waited = at - rollout.since
    has_calls = facts.compared - rollout.calls_before >= rollout.terms.calls or waited >= QUIET_S
    if waited < rollout.terms.every_s or not has_calls:
        return RolloutStep(_released(rollout)) if rollout.held else None
    if rollout.terms.gate and facts.gate is not True:
        return _held(rollout, "gate" if facts.gate is None else "the gate refused", at)
    return _at_step(rollout, rollout.step + 1, facts, at)


def _from_baking(rollout: Rollout, verdict: Verdict, at: float) -> RolloutStep | None:
    if at - rollout.since < rollout.terms.bake_s:
        return RolloutStep(_released(rollout)) if rollout.held else None
    if verdict.word == "verified" or rollout.terms.skip_judging:
        return _promoted(rollout, at, "verified")
    match rollout.terms.on_undecided:
        case "hold":
            return _held(rollout, "undecided", at)
        case "rollback":
            return _back(rollout, at, "undecided at its end", marks=False)
    return _promoted(rollout, at, "unverified")


def _why_held(rollout: Rollout, verdict: Verdict, at: float) -> str | None:
    if rollout.terms.skip_judging:
        return None
    if verdict.word == "invalid":
        return "invalid_split"
    if rollout.warned_at and at - rollout.warned_at < CALM_S:
        return "evidence"
    return None


def _aim(rollout: Rollout, step: int) -> int:
    """The share that a step is for: of the last one without what is held back."""
    steps = rollout.terms.steps
    share = steps[min(max(step, 0), len(steps) - 1)]
    return min(share, WHOLE - rollout.terms.hold_back) if share >= WHOLE else share


def _share_now(rollout: Rollout, aim: int, facts: RolloutFacts) -> int:
    """What ready capacity carries, of every function: its caller is on one side in all of them."""
    found = aim
    for function, version in rollout.canary.items():
        ready, whole = facts.ready.get(version, 0), facts.ready.get(rollout.control[function], 0)
        if rollout.terms.twin and (twin := rollout.twins.get(function)) is not None and aim <= WHOLE // 2:
            ready = min(ready, facts.ready.get(twin, 0))
        found = min(found, share_carried(aim, ready=ready, whole=whole))
    return found


def _at_step(rollout: Rollout, step: int, facts: RolloutFacts, at: float) -> RolloutStep:
    """The rollout at a step, or baking behind the last one."""
    last = len(rollout.terms.steps) - 1
    state = RolloutState.BAKING if step > last or rollout.terms.steps[step] >= WHOLE else RolloutState.RAMP
    step = min(step, last)
    aim = _aim(rollout, step)
    share = max(rollout.share, _share_now(rollout, aim, facts))
    now = replace(_in_state(_released(rollout), state, at), step=step, calls_before=facts.compared)
    what = "bakes" if state is RolloutState.BAKING else f"step {step + 1} of {last + 1}"
    return RolloutStep(_with_share(now, share), "step", f"{what}: {share / 100:g} % of the traffic")


def _with_share(rollout: Rollout, share: int) -> Rollout:
    return replace(rollout, share=share, twin_share=twin_share_of(share) if rollout.terms.twin else 0)


def _in_state(rollout: Rollout, state: RolloutState, at: float) -> Rollout:
    return replace(rollout, state=state, since=at, held="", held_at=0.0)


def _released(rollout: Rollout) -> Rollout:
    return replace(rollout, held="", held_at=0.0)


def _held(rollout: Rollout, why: str, at: float) -> RolloutStep | None:
    if rollout.held == why:
        return None
    return RolloutStep(replace(rollout, held=why, held_at=at), "held", why)


def _back(rollout: Rollout, at: float, reason: str, *, marks: bool) -> RolloutStep:
    return RolloutStep(rolled_back(rollout, at, reason), "rolled_back", reason, marks=marks)


def rolled_back(rollout: Rollout, at: float, reason: str) -> Rollout:
    """Routing first: nothing goes to the new version from this change on."""
    return replace(_in_state(rollout, RolloutState.ROLLING_BACK, at), share=0, twin_share=0, reason=reason)


def _after_rollback(rollout: Rollout, facts: RolloutFacts, at: float) -> RolloutStep | None:
    if not facts.is_drained and at - rollout.since < DRAIN_S:
        return None
    return RolloutStep(replace(rollout, state=RolloutState.ROLLED_BACK, since=at))


def _promoted(rollout: Rollout, at: float, reason: str) -> RolloutStep:
    now = replace(_in_state(rollout, RolloutState.PROMOTED, at), share=WHOLE, twin_share=0, reason=reason)
    return RolloutStep(now, "promoted", reason, promotes=True)
