"""What a function must be that runs calls in place of another one: one of the same deploy that answers as that does."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_gateway.schemas.like_methods import methods_fault


def check_fallbacks(specs: Sequence[FunctionSpec]) -> None:
    """Refuse a deploy in which a function's fallback is not there, or could not take its calls.

    Raises:
        BadInput: naming both functions and what differs.
    """
    known = {spec.name: spec for spec in specs}
    for spec in specs:
        if spec.fallback is UNSET:
            continue
        other = known.get(spec.fallback.function)
        if other is None:
            names = ", ".join(name for name in known if name != spec.name) or "none"
            raise BadInput(
                f"{spec.name}: fallback: there is no function {spec.fallback.function} in this app; the others are "
                f"{names}.",
                field="fallback",
            )
        if other.pipeline is not UNSET and spec.pipeline is UNSET:
            raise BadInput(
                f"{spec.name}: fallback: {other.name} has hooks, and {spec.name} has none: a class with hooks runs "
                "calls in place of one with hooks alone.",
                field="fallback",
            )
        if why := methods_fault(spec.methods, other.methods):
            raise BadInput(
                f"{spec.name}: fallback: {other.name} could not take its calls: {why}. Give both the same type hints.",
                field="fallback",
            )
