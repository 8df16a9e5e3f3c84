"""Which function runs a call in place of the one that was asked for, when that one has no room for it."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from msgspec import UNSET, UnsetType

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name

TIERS_AT_MOST = 32


class Fallback(msgspec.Struct, frozen=True):
    """A function of the same app, with the same methods: usually a smaller or a quantised model."""

    function: str
    classes: tuple[str, ...] = ()
    """Priorities of calls that it takes; none: all."""
    tiers: tuple[str, ...] = ()
    """Tiers of tenants whose calls it takes; none: all."""


def fallback_fault(fallback: Fallback | UnsetType, own: str, classes: Collection[str]) -> str:
    """Why a function called `own` cannot have it, where calls have these `classes`; "": it can, or has none."""
    if fallback is UNSET:
        return ""
    try:
        check_name(fallback.function, "fallback")
        for tier in fallback.tiers:
            check_name(tier, "tier")
    except BadInput as error:
        return error.detail.removesuffix(".")
    if fallback.function == own:
        return "it names the function itself: name another one of the app"
    if unknown := sorted(set(fallback.classes) - set(classes)):
        return f"there is no class {unknown[0]!r}: expected {', '.join(classes)}"
    if len(fallback.tiers) > TIERS_AT_MOST:
        return f"it names {len(fallback.tiers)} tiers, and {TIERS_AT_MOST} are the most"
    return ""
