"""Reads a JSON body as a struct."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.strict import convert_strictly, strict
from pilotlight_gateway.bodies.call_requests import wrong_shape

T = TypeVar("T")
EXACT = 2**53
"""Up to here floats are exact."""


def read_json(body: bytes, kind: type[T], *, patient: bool) -> T:
    """The body as a `kind`, without unknown fields. If `patient`, 3.0 may stand for 3: a walk over every value.

    Raises:
        BadInput: `bad_request`, or naming the field.
    """
    try:
        try:
            checked = msgspec.json.decode(body, type=strict(kind))
            return checked if strict(kind) is kind else msgspec.json.decode(body, type=kind)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error) or not patient:
                raise
            return convert_strictly(_whole_numbers(msgspec.json.decode(body)), kind)
    except msgspec.ValidationError as error:
        raise wrong_shape(error, kind if issubclass(kind, msgspec.Struct) else None) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"The body is not JSON: {error}.", code="bad_request") from None
    except RecursionError:
        raise BadInput("The body is nested too deep.", field="body") from None


def _whole_numbers(value: Any) -> Any:
    """`value` with 3.0 as 3: JSON does not distinguish them, msgspec does."""
    if isinstance(value, dict):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT:
        return int(value)
    return value
