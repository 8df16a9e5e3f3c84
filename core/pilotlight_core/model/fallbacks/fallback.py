"""Which function runs a call in place of the one that was asked for, when that one has no room for it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import UNSET, UnsetType

TIERS_AT_MOST = 32


class Fallback(msgspec.Struct, frozen=True):
    """A function of the same app, with the same methods: usually a smaller or a quantised model."""

    function: str
    classes: tuple[str, ...] = ()
    """Priorities of calls that it takes; none: all."""
    tiers: tuple[str, ...] = ()
    """Tiers of tenants whose calls it takes; none: all."""


def fallback_fault(fallback: Fallback | UnsetType, own: str, classes: Sequence[str]) -> str:
    """Why a function called `own` cannot have it, where calls have these `classes`; "": it can, or has none."""
    if fallback is UNSET:
        return ""
    if fallback.function == own:
        return "it names the function itself: name another one of the app"
    if unknown := sorted(set(fallback.classes) - set(classes)):
        return f"there is no class {unknown[0]!r}: expected {', '.join(classes)}"
    if len(fallback.tiers) > TIERS_AT_MOST:
        return f"it names {len(fallback.tiers)} tiers, and {TIERS_AT_MOST} are the most"
    return ""
