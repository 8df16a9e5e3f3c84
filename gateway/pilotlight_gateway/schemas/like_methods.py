"""Whether a call of one function can be run by another one, and answered as that would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pilotlight_core.model.spec import MethodSpec

DOCSTRING = "description"


def methods_fault(asked: Sequence[MethodSpec], offered: Sequence[MethodSpec]) -> str:
    """Why calls of the methods `asked` for cannot be run by those `offered`; "": they can."""
    known = {method.name: method for method in offered}
    for method in asked:
        other = known.get(method.name)
        called = f"its method {method.name}" if method.name else "it"
        if other is None:
            return f"it has no method {method.name}" if method.name else "it is a class"
        if other.mode is not method.mode:
            return f"{called} yields, or returns, where the other one does not"
        if _without_text(other.input_schema) != _without_text(method.input_schema):
            return f"the arguments of {called} are others"
        if _without_text(other.output_schema) != _without_text(method.output_schema):
            return f"the answer of {called} is another"
    return ""


def _without_text(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without the docstring of its function."""
    return {key: value for key, value in schema.items() if key != DOCSTRING}
