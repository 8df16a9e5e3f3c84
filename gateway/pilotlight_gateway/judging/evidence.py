"""All that the judge has seen of a rollout, folded from the stream of compared calls, with its place in that stream.

It is stored in one write with that place: whoever reads it goes on from there, so a judge that dies neither loses nor
repeats a call, and what it finds is the same to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout
from pilotlight_gateway.judging.baselines import Baselines, Stratum, size_of
from pilotlight_gateway.judging.bets import AmountBet, CrashBet, EventBet, PairBet, ProofBet, SplitBet, clipped
from pilotlight_gateway.judging.open_groups import GroupMean, OpenGroups

OF_VERSIONS = frozenset({"function_raised", "bad_output", "load_failed", "container_died", "execution_timeout"})
"""Codes of failures that a version may be to blame for; others say nothing of it."""
FIRST_CALLS = 20
"""Of a container, which warms up: they are left out."""
UNIT_CALLS = 20
"""A sticky unit is one observation, made of so many of its calls."""
WITHIN = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
DEFAULT_TOLERANCE = 0.05
LIVE = ("crash", "errors", "slow", "latency", "cost", "dear")
"""The guards of each rollout; their weights are 1 unless the rollout says otherwise."""
STREAMED = ("first_token", "token_gap")
STALE = "stale_split"


class Sums(msgspec.Struct):
    """Of one side, for the effect that is shown."""

    calls: int = 0
    failed: int = 0
    latency: float = 0.0
    """Of the residuals of logarithms."""
    cost: float = 0.0
    measured: int = 0


class Evidence(msgspec.Struct):
    """`fold` changes it; encode it to keep it."""

    rollout: str
    """The id of the rollout that it is of."""
    weights: dict[str, float]
    """By guard, of those that E is the mean of."""
    tolerance: float = DEFAULT_TOLERANCE
    is_sticky: bool = False
    seq: int = 0
    """The last message of the stream that is in it."""
    baselines: Baselines = msgspec.field(default_factory=Baselines)
    events: dict[str, EventBet] = msgspec.field(default_factory=dict)
    amounts: dict[str, AmountBet] = msgspec.field(default_factory=dict)
    crash: CrashBet = msgspec.field(default_factory=CrashBet)
    pairs: PairBet = msgspec.field(default_factory=PairBet)
    split: SplitBet = msgspec.field(default_factory=SplitBet)
    proofs: dict[str, list[ProofBet]] = msgspec.field(default_factory=dict)
    """`latency` and `cost`, one for each part of `WITHIN`."""
    sums: dict[str, Sums] = msgspec.field(default_factory=dict)
    """By arm."""
    open: OpenGroups = msgspec.field(default_factory=OpenGroups)
    left_out: dict[str, int] = {}
    """Calls by why they say nothing."""
    pairs_ran: int = 0
    differing: dict[str, int] = {}
    """By arm, of the shadows whose answer was another one than the caller's."""
    compared_new: int = 0
    """Calls of the new version that were compared."""

    def e_of(self, guard: str) -> float:
        """What the bet of a guard has won."""
        if guard == "crash":
            return self.crash.e
        if guard == "pairs":
            return self.pairs.e
        bet = self.events.get(guard) or self.amounts.get(guard)
        return bet.e if bet is not None else 1.0

    @property
    def total(self) -> float:
        """E: the mean of the guards, by their weights."""
        whole = math.fsum(self.weights.values())
        return math.fsum([weight * self.e_of(guard) for guard, weight in self.weights.items()]) / whole

    def guards(self) -> dict[str, float]:
        return {guard: self.e_of(guard) for guard in self.weights}


def begin_evidence(rollout: Rollout, *, streams: bool = False, seq: int = 0) -> Evidence:
    """Nothing is seen yet. `streams`: whether the function answers in chunks; `seq`: the stream's last message."""
    terms = rollout.terms
    names = [*LIVE, *(STREAMED if streams else ()), *(["pairs"] if terms.pairs else [])]
    weights = {name: terms.weights.get(name, 1.0) for name in names}
    weights |= {guard.name: guard.weight for guard in terms.guards}
    events = ["errors", "slow", "dear", "degraded", *(one.name for one in terms.guards if one.kind == "event")]
    amounts = ["latency", "cost", "start", *STREAMED, *(one.name for one in terms.guards if one.kind == "amount")]
    return Evidence(
        rollout=rollout.id,
        weights={name: weight for name, weight in weights.items() if weight > 0.0} or {"crash": 1.0},
        tolerance=DEFAULT_TOLERANCE if terms.tolerance is None else terms.tolerance,
        is_sticky=terms.sticky != "call",
        seq=seq,
        events={name: EventBet() for name in events},
        amounts={name: AmountBet() for name in amounts},
        pairs=PairBet(tolerance=0.01 if terms.tolerance is None else terms.tolerance),
        proofs={name: [ProofBet(within) for within in WITHIN] for name in ("latency", "cost")},
    )


def fold(evidence: Evidence, seq: int, calls: Iterable[ComparedCall]) -> None:
    """Take one message of the stream in; one that is in it already changes nothing."""
    if seq <= evidence.seq:
        return
    for call in calls:
        if call.rollout == evidence.rollout:
            _fold_call(evidence, call)
    evidence.seq = seq


def _fold_call(evidence: Evidence, call: ComparedCall) -> None:
    if call.pair:
        _fold_pair(evidence, call)
        return
    a, rho = int(call.arm == Arm.CANARY), call.rho
    if not 0.0 < rho < 1.0:
        if not a and not call.code:
            evidence.baselines.learn(call, comparing=False)
        else:
            _leave_out(evidence, "not compared")
    elif call.is_retry or call.code == STALE:
        _leave_out(evidence, "retried or sent anew")
    else:
        _fold_compared(evidence, call, a, rho)


def _fold_compared(evidence: Evidence, call: ComparedCall, a: int, rho: float) -> None:
    """A call that was sent to its side by the draw."""
    if call.start_ms > 0.0:
        _note_amount(evidence, "start", a, rho, math.log(call.start_ms))
    if not evidence.is_sticky:
        evidence.split.note(a, rho)
    sums = evidence.sums.setdefault(call.arm, Sums())
    sums.calls += 1
    if a:
        evidence.compared_new += 1
    if call.is_degraded:
        evidence.events["degraded"].note(a, rho)
    _note_outcome(evidence, call, a, rho, sums)
    if call.code:
        return
    if call.is_cold or call.nth_call <= FIRST_CALLS:
        _leave_out(evidence, "cold, or its container was new")
        return
    _note_measures(evidence, call, a, rho, sums)
    if not a:
        evidence.baselines.learn(call, comparing=True)


def _note_outcome(evidence: Evidence, call: ComparedCall, a: int, rho: float, sums: Sums) -> None:
    """Whether it failed by its version's fault: once per death of a container, and once per batch."""
    failed = call.code in OF_VERSIONS
    if call.code and not failed:
        _leave_out(evidence, "no fault of a version")
        return
    if failed:
        once = call.container if call.code in ("container_died", "load_failed") else call.batch
        if once and not evidence.open.is_first(f"{call.code}/{once}"):
            return
        sums.failed += 1
    if evidence.is_sticky and call.unit:
        _fold_unit_failure(evidence, call, a, rho, failed=failed)
    elif failed:
        evidence.events["errors"].note(a, rho)
    if a:
        evidence.crash.note(failed=failed)


def _fold_unit_failure(evidence: Evidence, call: ComparedCall, a: int, rho: float, *, failed: bool) -> None:
    """A sticky unit has one event of failure, however often it fails."""
    if failed and evidence.open.is_first(f"failed/{call.unit}"):
        evidence.events["errors"].note(a, rho)


def _note_measures(evidence: Evidence, call: ComparedCall, a: int, rho: float, sums: Sums) -> None:
    """How long it ran and what it cost, against what the old version takes for its size."""
    stratum = evidence.baselines.of(call)
    for guard, value in call.fields.items():
        if guard in evidence.events:
            if value:
                evidence.events[guard].note(a, rho)
        elif guard in evidence.amounts and value > 0.0:
            _note_amount(evidence, guard, a, rho, math.log(value))
    if call.first_ms > 0.0 and "first_token" in evidence.weights:
        _note_amount(evidence, "first_token", a, rho, math.log(call.first_ms))
    if call.gap_ms > 0.0 and "token_gap" in evidence.weights:
        _note_amount(evidence, "token_gap", a, rho, math.log(call.gap_ms))
    if stratum is None or call.execute_ms <= 0.0 or call.gpu_ns <= 0:
        _leave_out(evidence, "too little is known of the old version")
        return
    latency, cost = _residuals(stratum, call)
    sums.measured += 1
    sums.latency += latency
    sums.cost += cost
    group = call.unit if evidence.is_sticky and call.unit else call.batch if call.batch_size > 1 else ""
    if not group:
        _bet(evidence, stratum, a, rho, latency, cost)
        return
    size = UNIT_CALLS if evidence.is_sticky and call.unit else call.batch_size
    ended = evidence.open.add(group, GroupMean(call.arm, rho, size, 0, 0.0, 0.0), latency, cost)
    for one in ended:
        _bet(evidence, stratum, int(one.arm == Arm.CANARY), one.rho, one.latency / one.seen, one.cost / one.seen)


def _residuals(stratum: Stratum, call: ComparedCall) -> tuple[float, float]:
    latency_line, cost_line = stratum.latency_line, stratum.cost_line
    assert latency_line is not None  # noqa: S101 - `Baselines.of` gives those alone
    assert cost_line is not None  # noqa: S101
    size = size_of(call)
    return latency_line.residual(size, call.execute_ms), cost_line.residual(size, float(call.gpu_ns))


def _bet(evidence: Evidence, stratum: Stratum, a: int, rho: float, latency: float, cost: float) -> None:
    """One observation: of a call, a batch, or a sticky unit."""
    latency_line, cost_line = stratum.latency_line, stratum.cost_line
    if latency_line is None or cost_line is None:
        return
    allowed = a * math.log1p(evidence.tolerance)
    for guard, line, rest, event in (
        ("latency", latency_line, latency, "slow"), ("cost", cost_line, cost, "dear"),
    ):  # fmt: skip
        moved, scale = rest - line.middle, 3.0 * line.scale
        evidence.amounts[guard].note(a, rho, clipped((moved - allowed) / scale))
        if rest - allowed > line.high:
            evidence.events[event].note(a, rho)
        for proof in evidence.proofs[guard]:
            proof.note(a, rho, clipped((moved - a * math.log1p(proof.within)) / scale))


def _note_amount(evidence: Evidence, guard: str, a: int, rho: float, value: float) -> None:
    """An amount that has no line of its own: against the first ones of the old version."""
    known = evidence.open.known(guard)
    if known.is_settled:
        allowed = a * math.log1p(evidence.tolerance)
        evidence.amounts[guard].note(a, rho, clipped((value - allowed - known.middle) / (3.0 * known.scale)))
    if not a:
        known.learn(value)


def _fold_pair(evidence: Evidence, call: ComparedCall) -> None:
    """Two shadows of one input: what both cost, and whether one failed where the other did not."""
    if call.differs:
        evidence.differing[call.arm] = evidence.differing.get(call.arm, 0) + 1
    first = evidence.open.take_first(call)
    if first is None:
        return
    new, old = (call, first) if call.arm == Arm.CANARY else (first, call)
    evidence.pairs_ran += 1
    failed_new, failed_old = new.code in OF_VERSIONS, old.code in OF_VERSIONS
    if failed_new != failed_old:
        evidence.events["errors"].note(int(failed_new), 0.5)
    if not failed_old:
        evidence.crash.note(failed=failed_new)
    if not new.code and not old.code:
        evidence.pairs.note(float(new.gpu_ns), float(old.gpu_ns))
        if max(new.nth_call, old.nth_call) > FIRST_CALLS or not old.is_cold:
            evidence.baselines.learn(old, comparing=False)


def _leave_out(evidence: Evidence, why: str) -> None:
    evidence.left_out[why] = evidence.left_out.get(why, 0) + 1
