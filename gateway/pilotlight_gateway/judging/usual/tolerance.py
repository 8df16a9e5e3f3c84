"""By how much the canary may be slower or dearer before it counts: no less than devices of one type differ anyway."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_gateway.judging.usual.usual_amounts import UsualAmount, size_of

LEAST_TOLERANCE = 0.02
UNLEARNT_TOLERANCE = 0.05
PAIR_TOLERANCE = 0.01
"""Pairs run on one device, in turn."""
START_TOLERANCE = 0.2
"""Starts wait for disks and networks."""
REACH = 2.6 * math.sqrt(2.0)
"""Two devices that are drawn by chance differ by more in one of a hundred rollouts."""
LEAST_DEVICES, LEAST_DEVICE_CALLS = 4, 50


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
    """How far containers of one version are apart, as a standard deviation of logarithms; None: they are too few.

    What the mean of a container's calls strays by chance is taken off.
    """
    by_container: dict[str, list[float]] = defaultdict(list)
    for call in calls:
        by_container[call.container].append(usual.residual(size_of(call), call.execute_ms))
    groups = [found for found in by_container.values() if len(found) >= LEAST_DEVICE_CALLS]
    if len(groups) < LEAST_DEVICES:
        return None
    means = [math.fsum(found) / len(found) for found in groups]
    whole = math.fsum(means) / len(means)
    between = math.fsum([(mean - whole) ** 2 for mean in means]) / (len(means) - 1)
    chance = math.fsum([
        math.fsum([(each - mean) ** 2 for each in found]) / (len(found) - 1) / len(found)
        for found, mean in zip(groups, means, strict=True)
    ]) / len(groups)  # fmt: skip
    return math.sqrt(max(0.0, between - chance))
