"""What the judge knows of a function of a rollout: its guards, what they are measured against, what is pending."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.batch_observations import PendingBatch
from pilotlight_gateway.judging.guards.amount_guard import AmountGuard
from pilotlight_gateway.judging.guards.crash_guard import CrashGuard
from pilotlight_gateway.judging.guards.event_guard import EventGuard
from pilotlight_gateway.judging.guards.pair_guard import PairGuard
from pilotlight_gateway.judging.guards.proofs import AmountProof, EventProof
from pilotlight_gateway.judging.guards.sample_ratio import SampleRatio
from pilotlight_gateway.judging.pair_costs import PairCosts
from pilotlight_gateway.judging.shadow_sides import ShadowSide
from pilotlight_gateway.judging.sticky_units import StickyUnits
from pilotlight_gateway.judging.usual.device_speeds import DeviceSpeeds
from pilotlight_gateway.judging.usual.slow_limits import FunctionSlowLimits
from pilotlight_gateway.judging.usual.strata import Strata
from pilotlight_gateway.judging.usual.usual_levels import UsualLevel


class FunctionEvidence(msgspec.Struct):
    """Of one function."""

    weights: dict[str, float]
    """By guard, its part of the mean."""
    whole: float
    """The sum of the weights."""
    events: dict[str, EventGuard]
    amounts: dict[str, AmountGuard]
    customs: dict[str, bool] = {}
    """Guards on fields of answers, and whether each is on an event."""
    crash: CrashGuard = msgspec.field(default_factory=CrashGuard)
    pairs: PairGuard = msgspec.field(default_factory=PairGuard)
    event_proofs: dict[str, EventProof] = {}
    amount_proofs: dict[str, AmountProof] = {}
    strata: Strata = msgspec.field(default_factory=Strata)
    levels: dict[str, UsualLevel] = {}
    """By guard and kind of call."""
    units: StickyUnits = msgspec.field(default_factory=StickyUnits)
    batches: dict[str, PendingBatch] = {}
    shadows: dict[str, ShadowSide] = {}
    """The first of two shadows of one input, by pair."""
    speeds: DeviceSpeeds | None = None
    """Of devices, while the tolerance is learnt of them."""
    is_sticky: bool = False
    tolerance: float = 0.05
    """The tolerated part of live calls."""
    pair_tolerance: float = 0.01
    split: SampleRatio = msgspec.field(default_factory=SampleRatio)
    calls: dict[str, int] = {}
    """Compared calls by arm."""
    measured: int = 0
    """Canary calls whose times and costs were compared."""
    left_out: dict[str, int] = {}
    """By reason, calls that were not compared."""
    dead: dict[str, float] = {}
    """Containers whose death was counted."""
    told: dict[str, float] = {}
    """Calls and batches that were slow before they ended, until they have."""
    parted: dict[str, bool] = {}
    """Batches that were taken as they were, and whether their failure is counted: times that come later count no more.
    """
    started: dict[str, float] = {}
    """Containers whose start was counted, and nodes where a side has started before."""
    pair_costs: PairCosts = msgspec.field(default_factory=PairCosts)
    told_pairs: int = 0
    """Pairs of shadows of which both sides have run, also those that failed; of a release that counted none, 0."""

    def value(self) -> float:
        """E of this function: the mean of its guards' e."""
        return self._mean(self.crash.e)

    def firm_value(self) -> float:
        """E without failures that are in doubt."""
        return self._mean(self.crash.firm_e)

    def _mean(self, crash_e: float) -> float:
        total = self.weights["crash"] * crash_e
        for name, event in self.events.items():
            total += self.weights[name] * event.e
        for name, amount in self.amounts.items():
            total += self.weights[name] * amount.e
        if "pairs" in self.weights:
            total += self.weights["pairs"] * self.pairs.e
        whole = self.whole
        return total / whole if whole > 0.0 else 1.0

    def guards(self) -> dict[str, float]:
        """Each guard's e."""
        found = {"crash": self.crash.e}
        found |= {name: event.e for name, event in self.events.items()}
        found |= {name: amount.e for name, amount in self.amounts.items()}
        if "pairs" in self.weights:
            found["pairs"] = self.pairs.e
        return {name: found[name] for name in self.weights}

    def pairs_seen(self) -> int:
        """Pairs of shadows that say something of both versions."""
        return max(self.told_pairs, self.pairs.pairs)

    def verified(self) -> dict[str, float]:
        """By guard, the part by which the canary is proven not to be worse."""
        found = {name: proof.within for name, proof in self.amount_proofs.items()}
        found |= {name: proof.within for name, proof in self.event_proofs.items()}
        return {name: within for name, within in found.items() if within is not None}

    def slow_limits(self) -> FunctionSlowLimits:
        """From when on its calls are slow, as of now."""
        return FunctionSlowLimits(self.tolerance, self.strata.usual_times())

    def note_event(self, guard: str, call: ComparedCall, *, canary: bool) -> None:
        """Bet on an event; of a sticky rollout, one of a call without a unit is an amount of 1."""
        if (event := self.events.get(guard)) is not None:
            event.note(canary=canary, rho=call.rho)
            if (proof := self.event_proofs.get(guard)) is not None:
                proof.note(canary=canary, rho=call.rho)
        elif (amount := self.amounts.get(guard)) is not None and not call.unit:
            amount.note(canary=canary, rho=call.rho, score=1.0, residual=1.0)

    def leave_out(self, reason: str) -> None:
        self.left_out[reason] = self.left_out.get(reason, 0) + 1
