"""What capacity the sides of a rollout need, and which share of the traffic ready capacity carries.

Plain functions: controllers keep as many containers as they say, and a rollout's shares rise as far as they allow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutState
from pilotlight_core.model.rollouts.split import twin_share_of

WARMED = frozenset({RolloutState.STARTING, RolloutState.PAIRS, RolloutState.RAMP, RolloutState.BAKING})
"""States in which the canary and its twin have containers before calls need them."""
SURGE_PART = 0.25


class ArmCapacity(NamedTuple):
    """What one side of a rollout keeps of its function's capacity."""

    arm: Arm
    part: float
    """Of the containers that carry all of the function's calls, from 0 to 1."""
    surge: int | None
    """Containers beyond what its own calls need; None: as `surge_of`."""

    def containers(self, whole: int, needed: int) -> int:
        """Containers to keep, where `whole` carry all calls of the function and its own calls need `needed`.

        The old version keeps all of them: it can take everything back at once.
        """
        if self.arm is Arm.CONTROL:
            return max(whole, needed)
        surge = surge_of(whole) if self.surge is None else self.surge
        return max(needed, min(math.ceil(self.part * whole), needed + surge))


def surge_of(whole: int) -> int:
    """Containers that a side of a rollout may have beyond what its calls need, unless the rollout says it."""
    return max(1, math.ceil(SURGE_PART * whole))


def capacities(rollout: Rollout, function: str) -> dict[str, ArmCapacity]:
    """By version, what each side of a running rollout keeps of a function that takes part; others keep nothing.

    Of a rollout that is rolling back the old version alone: what runs on the other side ends.
    """
    control = rollout.control.get(function)
    if control is None or function not in rollout.canary or not rollout.is_running:
        return {}
    found = {control: ArmCapacity(Arm.CONTROL, 1.0, None)}
    if rollout.state in WARMED:
        surge, share = rollout.terms.surge, max(rollout.share, next_share(rollout))
        found[rollout.canary[function]] = ArmCapacity(Arm.CANARY, share / WHOLE, surge)
        if (twin := rollout.twins.get(function)) is not None:
            found[twin] = ArmCapacity(Arm.TWIN, twin_share_of(share) / WHOLE, surge)
    return found


def next_share(rollout: Rollout) -> int:
    """The canary's share at the step after this one; at the last step that step's own."""
    steps = rollout.terms.steps
    return steps[min(rollout.step + 1, len(steps) - 1)] if steps else 0


def share_carried(wanted: int, *, ready: int, whole: int) -> int:
    """The share, of at most `wanted` basis points, that `ready` containers carry where `whole` carry all calls.

    A function without containers has no calls to lose, so all of it may move: the first call starts one.
    """
    if whole <= 0:
        return wanted
    return min(wanted, WHOLE * ready // whole)
