"""Which side of a rollout a unit is on. Plain functions, the same at every gateway.

A unit falls into one of `WHOLE` buckets by a salted hash (HMAC-SHA256). The canary has the lowest buckets and the twin
the highest: raising a share only moves units into that side, and none from one side to the other.
"""

from __future__ import annotations

import hmac
from typing import NamedTuple

from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout


class Drawn(NamedTuple):
    """Where a unit goes."""

    arm: Arm
    version: str
    rho: float
    """The probability with which a compared call was sent to the canary, at this share; 0: it is not compared."""


class Side(NamedTuple):
    """On which side of a rollout a call is, and by what it was decided."""

    rollout: str
    """Its id."""
    arm: Arm
    rho: float
    """As in `Drawn`."""
    unit: str
    """The sticky unit, hashed; "": the call was drawn by itself."""


def bucket_of(salt: bytes, unit: str) -> int:
    """The bucket of a unit, in [0, `WHOLE`): the first 8 bytes of its HMAC."""
    return int.from_bytes(hmac.digest(salt, unit.encode(), "sha256")[:8], "big") % WHOLE


def drawn(rollout: Rollout, function: str, unit: str) -> Drawn | None:
    """Where a call of `function` by `unit` goes; None: the function takes no part.

    The caller has seen to cohorts and pins.
    """
    canary = rollout.canary.get(function)
    if canary is None or not rollout.is_running:
        return None
    bucket, rho, control = bucket_of(rollout.salt, unit), compared_share(rollout), rollout.control[function]
    if bucket < rollout.share:
        return Drawn(Arm.CANARY, canary, rho)
    if bucket >= WHOLE - rollout.twin_share and (twin := rollout.twins.get(function)) is not None:
        return Drawn(Arm.TWIN, twin, rho)
    return Drawn(Arm.CONTROL, control, 0.0 if rollout.terms.twin else rho)


def compared_share(rollout: Rollout) -> float:
    """The probability that a compared call is a canary's."""
    beside = rollout.twin_share if rollout.terms.twin else WHOLE - rollout.share
    return rollout.share / (rollout.share + beside) if rollout.share + beside else 0.0


def twin_share_of(share: int) -> int:
    """The twin's share beside a canary's: as large, as far as there is room."""
    return min(share, WHOLE - share)
