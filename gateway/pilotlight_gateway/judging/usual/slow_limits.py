"""From when on calls of a rollout are slow: what its judge lets gateways know, so that they tell of calls that hang."""

from __future__ import annotations

import math

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.usual.strata import names_of
from pilotlight_gateway.judging.usual.tolerance import tolerated
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount, size_of


class FunctionSlowLimits(msgspec.Struct, frozen=True, array_like=True):
    """Of one function."""

    tolerance: float
    """The tolerated part of the canary's calls."""
    usual: dict[str, UsualAmount] = {}
    """Times of the old version's calls, by stratum: of those that calls are measured against."""


class SlowLimits(msgspec.Struct, frozen=True, array_like=True):
    """Of one rollout."""

    rollout: str
    functions: dict[str, FunctionSlowLimits] = {}

    def slow_after_ms(self, call: ComparedCall) -> float | None:
        """When a call like this one is slow; None: too little is known. `call` needs what is known before it ends."""
        function = self.functions.get(call.function)
        if function is None or call.rollout != self.rollout:
            return None
        usual = next((found for name in names_of(call) if (found := function.usual.get(name)) is not None), None)
        if usual is None:
            return None
        line = usual.level + usual.slope * size_of(call)
        tolerance = tolerated(function.tolerance, math.exp(line)) if call.arm == Arm.CANARY else 0.0
        return math.exp(line + usual.high + tolerance)
