"""What bets are worth: products of factors, kept where a float can hold them.

Guards look for the bounds at the sum of all bets, and at the last bet alone: it is the boldest, so it falls first.
"""

from __future__ import annotations

LEAST, MOST = 1e-290, 1e290
"""Bounds that add or take nothing that a verdict could see: it is said at 100."""


def bounded_wealth(wealth: list[float]) -> list[float]:
    """The same within what a float holds: a bet that has lost everything could never win again."""
    return [min(max(each, LEAST), MOST) for each in wealth]


def clipped(value: float) -> float:
    """A score within [-1, 1]: no call says more than any other may."""
    if value > 1.0:
        return 1.0
    return -1.0 if value < -1.0 else value
