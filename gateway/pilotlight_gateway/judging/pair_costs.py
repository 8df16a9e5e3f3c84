"""What a pair of shadows cost, without the most of what is the machine's own.

A call is billed from when its agent gives it to the guest until it has the answer: the time of the function's code, and
the rest, in which processes wake, read and write. Code is the version's. The rest is mostly the machine's: on a busy
one a wake-up of the agent now and then takes a tenth of the call. So the rest counts up to what three of four shadows
of late, of both versions, had of it. A version that always makes more of it, such as by larger answers, has half of
these, so all of that counts.

Both sides are taken alike, and by shadows of before alone, so of equal versions neither is favoured.
"""

from __future__ import annotations

import msgspec

from pilotlight_gateway.judging.shadow_sides import ShadowSide
from pilotlight_gateway.judging.usual.robust import quantile_of

KEPT = 64
"""Shadows of late whose rest is known."""
LEAST = 16
"""Shadows before which all of the rest counts."""
PART = 0.75


class PairCosts(msgspec.Struct):
    """Of one function."""

    rests: list[float] = []
    """Of the last shadows, the newest last: nanoseconds of a whole GPU."""

    def counted(self, canary: ShadowSide, other: ShadowSide) -> tuple[float, float]:
        """What both shadows of a pair count as; it learns of them."""
        if not (_is_told(canary) and _is_told(other)):
            return canary.cost, other.cost
        sides, most = (canary, other), self._most()
        found = [side.code + min(side.cost - side.code, most / side.parts) for side in sides]
        self.rests = [*self.rests, *[(side.cost - side.code) * side.parts for side in sides]][-KEPT:]
        return found[0], found[1]

    def _most(self) -> float:
        return quantile_of(self.rests, PART) if len(self.rests) >= LEAST else float("inf")


def _is_told(side: ShadowSide) -> bool:
    """Whether it is known what its code took; where calls share a container, that is more than what each is billed."""
    return 0.0 < side.code <= side.cost
