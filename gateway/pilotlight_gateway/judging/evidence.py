"""The whole state of the judge of one rollout, and how compared calls change it.

It is written as one value with the place in the stream that it was folded from, so a judge that was killed goes on
where it was: what was folded is not folded again, and each number has the same bits as if nothing had happened.
Evidence is never reset between steps: each call brings the probability with which it was sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutTerms, Sticky
from pilotlight_gateway.judging.call_folding import fold_call, is_warm
from pilotlight_gateway.judging.failures import OF_VERSION
from pilotlight_gateway.judging.function_evidence import FunctionEvidence
from pilotlight_gateway.judging.guards.amount_guard import AmountGuard
from pilotlight_gateway.judging.guards.event_guard import EventGuard
from pilotlight_gateway.judging.guards.guard_set import amount_guards, event_guards, weights_of
from pilotlight_gateway.judging.guards.pair_guard import STAKES, PairGuard
from pilotlight_gateway.judging.guards.proofs import AmountProof, EventProof
from pilotlight_gateway.judging.sticky_units import MOST_UNITS
from pilotlight_gateway.judging.usual.device_speeds import DeviceSpeeds
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits
from pilotlight_gateway.judging.usual.strata import MOST_SAMPLES, is_measured
from pilotlight_gateway.judging.usual.tolerance import PAIR_TOLERANCE, learnt_spread, live_tolerance

HOLD, ROLL_BACK = 10.0, 100.0
"""E from which the ramp holds, and from which the rollout rolls back."""
FORMAT = 1
LEAST_SHARED = 100
"""Samples and sticky units of each function, of however many: all evidence is one value of the bus."""
PROVEN_AMOUNTS = ("latency", "cost", "pairs")
PROVEN_EVENTS = ("errors", "slow")


class Evidence(msgspec.Struct):
    """What is known of one rollout."""

    rollout: str
    """Its id: calls of others are not looked at."""
    functions: dict[str, FunctionEvidence]
    seq: int = 0
    """The last sequence of the stream that was folded."""
    calls: int = 0
    """Calls that were folded."""
    value: float = 1.0
    """E: the mean over functions of the mean of their guards' e."""
    peak: float = 1.0
    """The largest E of any instant, without failures that were in doubt: 100 is 100, also if it was less after the
    next call."""
    crossed_at: int = 0
    """`calls` when `peak` came to `ROLL_BACK`; 0: it has not."""
    high_at: float = 0.0
    """Unix seconds of the last call at which E was `HOLD` or more, without what was in doubt; 0: never."""
    last_at: float = 0.0
    """Unix seconds of the latest call."""
    format: int = FORMAT

    @property
    def is_regressed(self) -> bool:
        """A failure in doubt counts while it is: what is taken back before anybody has decided was never there."""
        return max(self.peak, self.value) >= ROLL_BACK

    @property
    def split_e(self) -> float:
        """What the bet against the split has won."""
        found = [function.split.e for function in self.functions.values()]
        return sum(found) / len(found) if found else 1.0


def start(
    rollout: Rollout,
    *,
    history: Iterable[ComparedCall] = (),
    streaming: Collection[str] = (),
    shadowed: Collection[str] = (),
    spreads: Mapping[str, float] | None = None,
    devices: int = 1,
    shared: bool = False,
) -> Evidence:
    """The evidence at the start of a rollout: nothing was seen.

    `history`: calls of the old versions before it, in their order; `streaming`, `shadowed`: functions that stream, and
    those that pairs of shadows may be made of; `spreads`: by function, how far the logarithms of its devices' speeds
    are apart, where it is known; `devices`: how many each side has; `shared`: whether both sides run on the same ones.
    """
    by_function: dict[str, list[ComparedCall]] = {
        function: [] for function in rollout.canary if function in rollout.control
    }
    for call in history:
        if (found := by_function.get(call.function)) is not None:
            found.append(call)
    functions = {}
    for function, calls in by_function.items():
        one = _function_of(rollout.terms, streams=function in streaming, pairs=function in shadowed)
        one.strata.most = max(LEAST_SHARED, MOST_SAMPLES // len(by_function))
        one.units.most = max(LEAST_SHARED, MOST_UNITS // len(by_function))
        functions[function] = one
        for call in calls:
            if call.code in OF_VERSION or not call.code:
                one.crash.note_other(failed=bool(call.code))
        one.crash.last = 0
        warm = [call for call in calls if is_measured(call) and is_warm(call)]
        one.strata.settle(warm)
        if rollout.terms.tolerance is None:
            spread = (spreads or {}).get(function)
            if spread is None:
                spread = _spread_of(one, warm)
            one.tolerance = live_tolerance(spread, devices=devices, shared=shared)
            one.speeds = DeviceSpeeds() if spread is None and not shared else None
    return Evidence(rollout.id, functions)


def fold(evidence: Evidence, seq: int, calls: Iterable[ComparedCall]) -> Evidence:
    """The evidence after the calls of a message, whose sequence in the stream is `seq`; folded messages change nothing.

    What is given is used up: the answer is the same object.
    """
    if seq <= evidence.seq:
        return evidence
    evidence.seq = seq
    for call in calls:
        function = evidence.functions.get(call.function)
        if function is None or call.rollout != evidence.rollout:
            continue
        fold_call(function, call)
        evidence.calls += 1
        evidence.last_at = max(evidence.last_at, call.at)
        functions = evidence.functions
        if len(functions) == 1:
            value = function.value()
            firm = function.firm_value() if function.crash.doubted else value
        else:
            firm = sum([one.firm_value() for one in functions.values()]) / len(functions)
            value = sum([one.value() for one in functions.values()]) / len(functions)
        evidence.value = value
        if firm >= HOLD:
            evidence.high_at = evidence.last_at
        if firm > evidence.peak:
            evidence.peak = firm
            if firm >= ROLL_BACK and not evidence.crossed_at:
                evidence.crossed_at = evidence.calls
    return evidence


def slow_limits_of(evidence: Evidence) -> SlowLimits:
    """From when on calls are slow, as of now."""
    return SlowLimits(evidence.rollout, {name: one.slow_limits() for name, one in evidence.functions.items()})


def encode_evidence(evidence: Evidence) -> bytes:
    """As it is written."""
    return _encoder.encode(evidence)


def decode_evidence(data: bytes) -> Evidence | None:
    """As it was written; None: by a release that writes it otherwise, so evidence begins anew."""
    try:
        evidence = _decoder.decode(data)
    except msgspec.DecodeError:
        return None
    return evidence if evidence.format == FORMAT else None


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Evidence)


def _function_of(terms: RolloutTerms, *, streams: bool, pairs: bool) -> FunctionEvidence:
    weights = weights_of(terms, streams=streams, pairs=pairs and terms.pairs > 0)
    events, amounts = event_guards(terms, weights), amount_guards(terms, weights)
    tolerance = terms.tolerance
    return FunctionEvidence(
        weights=weights,
        whole=sum(weights.values()),
        events={name: EventGuard() for name in events},
        amounts={name: AmountGuard(canary_squares=0.0, other_squares=0.0) for name in amounts},
        pairs=PairGuard(squares=0.0, near=[1.0] * len(STAKES)),
        customs={guard.name: guard.kind == "event" for guard in terms.guards},
        event_proofs={name: EventProof() for name in events if name in PROVEN_EVENTS},
        amount_proofs={name: AmountProof() for name in weights if name in PROVEN_AMOUNTS},
        is_sticky=terms.sticky is not Sticky.CALL,
        tolerance=0.05 if tolerance is None else tolerance,
        pair_tolerance=PAIR_TOLERANCE if tolerance is None else tolerance,
    )


def _spread_of(function: FunctionEvidence, calls: list[ComparedCall]) -> float | None:
    """How far devices are apart, by the history's largest stratum."""
    if not calls:
        return None
    counts: dict[tuple[str, str], list[ComparedCall]] = {}
    for call in calls:
        counts.setdefault((call.method, call.gpu_type), []).append(call)
    largest = max(counts.values(), key=len)
    stratum = function.strata.known.get(f"{largest[0].method} {largest[0].gpu_type}")
    if stratum is None or stratum.latency is None:
        return None
    return learnt_spread(largest, stratum.latency)
