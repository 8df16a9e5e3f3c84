"""By how much the canary may be slower or dearer before it counts: no less than devices of one type differ anyway."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.usual.device_speeds import DeviceSpeeds
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount, size_of

LEAST_TOLERANCE = 0.02
LEAST_MS = 0.2
"""Of times and costs: containers of one version differ by that much, however short their calls are."""
UNLEARNT_TOLERANCE = 0.05
PAIR_TOLERANCE = 0.01
"""Pairs run on one device, in turn."""
START_TOLERANCE = 0.2
"""Starts wait for disks and networks."""
REACH = 2.6 * math.sqrt(2.0)
"""Two devices that are drawn by chance differ by more in one of a hundred rollouts."""


def tolerated(part: float, usual_ms: float) -> float:
    """The logarithm of 1 + the tolerated part of an amount that usually takes `usual_ms`."""
    return math.log1p(max(part, LEAST_MS / usual_ms))


def live_tolerance(spread: float | None, *, devices: int, shared: bool) -> float:
    """The tolerated part of live calls.

    `spread`: the standard deviation of the logarithm of speed between devices of the type, None until it is learnt;
    `devices`: how many each side has; `shared`: whether both sides run on the same ones.
    """
    if shared:
        return LEAST_TOLERANCE
    if spread is None:
        return UNLEARNT_TOLERANCE
    return max(LEAST_TOLERANCE, REACH * spread / math.sqrt(max(1, devices)))


def learnt_spread(calls: Iterable[ComparedCall], usual: UsualAmount) -> float | None:
    """How far containers of one version are apart, as a standard deviation of logarithms; None: they are too few."""
    speeds = DeviceSpeeds()
    for call in calls:
        speeds.note(call.container, usual.residual(size_of(call), call.execute_ms))
    return speeds.spread()
