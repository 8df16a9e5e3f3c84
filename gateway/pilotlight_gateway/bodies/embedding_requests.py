"""Requests for embeddings, and what they come to."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.generation_requests import missing, read_model, read_value
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields, user_of
from pilotlight_gateway.bodies.request_fields import read_fields

KNOWN = frozenset({"model", "input", "encoding_format", "dimensions", "user"})
FORMATS = ("float", "base64")
MOST_INPUTS = 2_048
INPUT = "input"
"""The parameter of engines."""


def read_embedding(body: bytes) -> ModelRequest:
    """Read the body of a request for embeddings.

    Raises:
        BadInput: `bad_request`, naming the field.
    """
    known, unknown = read_fields(body, KNOWN)
    model = read_model(known)
    form: str = read_value(known, "encoding_format", str, default="float")
    if form not in FORMATS:
        raise BadInput(
            f"encoding_format: expected {' or '.join(FORMATS)}.", code="bad_request", field="encoding_format"
        )
    texts, count = _texts(known)
    fields = {INPUT: texts} | {name: known[name] for name in ("dimensions",) if name in known}
    return ModelRequest(
        model=model, count=count, as_base64=form == "base64", fields=fields, ignored=unknown, user=user_of(known)
    )


def _texts(known: RawFields) -> tuple[msgspec.Raw, int]:
    """The inputs as a list of texts, and how many these are."""
    if (raw := known.get(INPUT)) is None:
        raise missing(INPUT, "a text, or a list of texts")
    head = bytes(memoryview(raw)[:64])
    if head[:1] == b'"':
        return msgspec.Raw(b"[" + bytes(memoryview(raw)) + b"]"), 1
    if head[:1] != b"[" or head[1:].lstrip()[:1] != b'"':
        raise BadInput(
            "input: expected a text, or a list of texts; ids of tokens are not supported.",
            code="bad_request", field=INPUT,
        )  # fmt: skip
    # Each takes a comma, so that a count of what are too many takes no time.
    count = _count(raw) if bytes(raw).count(b'",') < 16 * MOST_INPUTS else MOST_INPUTS + 1
    if count > MOST_INPUTS:
        raise BadInput(f"input: expected at most {MOST_INPUTS} texts.", code="bad_request", field=INPUT)
    return raw, count


def _count(raw: msgspec.Raw) -> int:
    try:
        return len(msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        raise missing(INPUT, "a list of texts") from None
