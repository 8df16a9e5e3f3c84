"""Two shadows of one input: what the first one left until the second one comes."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_gateway.judging.failures import OF_VERSION

MOST_WAITING = 64


class ShadowSide(msgspec.Struct, array_like=True):
    """One of the two."""

    canary: bool
    failed: bool
    ended_well: bool
    cost: float
    """GPU time; of streams, for each token."""
    differs: bool
    parts: int
    """What `cost` is for each of: tokens of streams, or 1."""
    code: float = 0.0
    """What of `cost` its own code took; 0: it is not known."""


def side_of(call: ComparedCall) -> ShadowSide:
    """What is compared of a shadow."""
    parts = call.tokens if call.tokens and call.first_ms > 0.0 else 1
    return ShadowSide(
        call.arm == Arm.CANARY,
        call.code in OF_VERSION,
        not call.code,
        call.gpu_ns / parts,
        call.differs,
        parts,
        call.code_ns / parts,
    )


def paired(waiting: dict[str, ShadowSide], call: ComparedCall) -> tuple[ShadowSide, ShadowSide] | None:
    """The canary's and the old version's shadow, if both have come now."""
    side, first = side_of(call), waiting.pop(call.pair, None)
    if first is None or first.canary == side.canary:
        waiting[call.pair] = side
        if len(waiting) > MOST_WAITING:
            del waiting[next(iter(waiting))]
        return None
    return (side, first) if side.canary else (first, side)
