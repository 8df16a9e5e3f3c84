"""The fields of a request's body, unread: what takes long to read is read where that harms nobody else."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.call_requests import wrong_shape
from pilotlight_gateway.bodies.model_request import RawFields

MOST_COLONS = 20_000
"""Of a body whose unknown fields are named: each may be one, and takes time."""
MOST_NAMED = 16
"""Unknown fields that are named."""
LONGEST_NAME = 64
"""Characters of such a name."""


class GivenFields(NamedTuple):
    """The fields of a body whose value is not null."""

    known: RawFields
    unknown: tuple[str, ...]


def read_fields(body: bytes, names: frozenset[str]) -> GivenFields:
    """The fields of a body: those of `names` unread, of others their names.

    Raises:
        BadInput: `bad_request`: it is no JSON object.
    """
    try:
        body.decode()  # fields that stay unread are not checked: whoever reads one later would meet what is no text
        found = msgspec.json.decode(body, type=_struct_of(names))
        known = {name: raw for name in names if is_given(raw := getattr(found, name))}
        unknown: tuple[str, ...] = ()
        if body.count(b":") <= MOST_COLONS:
            others = (name for name in msgspec.json.decode(body, type=dict[str, msgspec.Raw]) if name not in names)
            unknown = tuple(name[:LONGEST_NAME] for _, name in zip(range(MOST_NAMED), others, strict=False))
    except msgspec.ValidationError as error:
        raise BadInput(wrong_shape(error).detail, code="bad_request", field="body") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"The body is not JSON: {error}.", code="bad_request") from None
    except RecursionError:
        raise BadInput("The body is nested too deep.", code="bad_request", field="body") from None
    return GivenFields(known, unknown)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether there is a value, other than null."""
    return bytes(memoryview(raw)[:5]) not in (b"", b"null")


@cache
def _struct_of(names: frozenset[str]) -> type[Any]:
    fields = [(name, msgspec.Raw, msgspec.Raw(b"")) for name in sorted(names)]
    return msgspec.defstruct("GivenBody", fields)
