"""Reads requests for calls: their bodies, media types, priorities and deadlines."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import Any

import msgspec

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import CLIENT_CALL_ID
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.values import MAX_DEPTH, check_count, depth_within
from pilotlight_gateway.schemas.plain_messages import plain, unknown_field

JSON_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
ROUND = bytes.maketrans(b"[{]}", b"(())")
NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
PLACE = re.compile(r"(.*) - at `\$\.?(.*)`", re.DOTALL)
UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
PRIORITIES = (Priority.INTERACTIVE, Priority.STANDARD, Priority.BATCH)


class BodyFormat(Enum):
    """The format of a body; the value is its media type."""

    JSON = b"application/json"
    MSGPACK = b"application/msgpack"
    EVENTS = b"text/event-stream"


MEDIA_TYPES = {
    b"": BodyFormat.JSON, b"application/json": BodyFormat.JSON, b"text/json": BodyFormat.JSON,
    b"application/msgpack": BodyFormat.MSGPACK, b"application/x-msgpack": BodyFormat.MSGPACK,
    b"application/vnd.msgpack": BodyFormat.MSGPACK,
}  # fmt: skip
ACCEPTED = MEDIA_TYPES | {
    b"text/event-stream": BodyFormat.EVENTS, b"*/*": BodyFormat.JSON, b"application/*": BodyFormat.JSON,
    b"text/*": BodyFormat.EVENTS,
}  # fmt: skip

LONGEST_MEDIA_TYPE = 256
"""Bytes of an Accept or Content-Type header; the longest that browsers send is about 150."""

_json = msgspec.json.Decoder(CallRequest)
_msgpack = msgspec.msgpack.Decoder(CallRequest)
_pack = msgspec.msgpack.Encoder()


def format_of_body(content_type: bytes) -> BodyFormat:
    """The format of a body with this Content-Type.

    Raises:
        BadInput: `unsupported_media_type`.
    """
    if len(content_type) > LONGEST_MEDIA_TYPE:
        raise _too_long("Content-Type", "unsupported_media_type")
    return _format_of_body(content_type)


def format_of_answer(accept: bytes) -> BodyFormat:
    """The first format of an Accept header that we have.

    Raises:
        BadInput: `not_acceptable`.
    """
    if len(accept) > LONGEST_MEDIA_TYPE:
        raise _too_long("Accept", "not_acceptable")
    return _format_of_answer(accept)


def _too_long(header: str, code: str) -> BadInput:
    said = f"{header} is longer than {LONGEST_MEDIA_TYPE} bytes: application/json is one that is known."
    return BadInput(said, code=code)


@lru_cache(1_024)
def _format_of_body(content_type: bytes) -> BodyFormat:
    found = MEDIA_TYPES.get(content_type.partition(b";")[0].strip().lower())
    if found is None:
        raise BadInput(
            f"A body of type {content_type[:100].decode('latin-1')!r} is not known: calls take application/json and "
            "application/msgpack.",
            code="unsupported_media_type",
        )
    return found


@lru_cache(1_024)
def _format_of_answer(accept: bytes) -> BodyFormat:
    for part in accept.split(b","):
        media, *options = (piece.strip().lower() for piece in part.split(b";"))
        if media in ACCEPTED and b"q=0" not in options:
            return ACCEPTED[media]
    raise BadInput(f"Nothing of {accept[:100].decode('latin-1')!r} can be given.", code="not_acceptable")


def read_call(body: bytes, kind: BodyFormat, most: int | None = None) -> CallRequest:
    """Decode a request; `input` holds all arguments, those of `parameters` included.

    Raises:
        BadInput: `bad_request` if it cannot be decoded, else naming the field.
        TooManyValues: it has more than `most`.
    """
    request = decode_call(body, kind, most)
    if request.id is not None and not CLIENT_CALL_ID.fullmatch(request.id):
        raise BadInput("id: expected 'cid_' and 8 to 60 letters, digits, '_' or '-'.", field="id")
    if not request.parameters:
        return request
    twice = request.input.keys() & request.parameters.keys()
    if twice:
        name = min(twice)
        raise BadInput(f"{name!r} stands in both input and parameters.", field=f"parameters.{name}")
    return msgspec.structs.replace(request, input=request.input | request.parameters)


def decode_call(body: bytes, kind: BodyFormat, most: int | None = None) -> CallRequest:
    """See `read_call`."""
    try:
        request = _decode(body, kind)
        if most is not None and len(body) > most:  # a value takes a byte at least
            check_count(most, request.input, request.parameters)
        if kind is BodyFormat.JSON:
            shallow = json_depth_within(body)
        else:
            shallow = depth_within(request.input) and depth_within(request.parameters)
    except msgspec.ValidationError as error:
        raise _with_advice(wrong_shape(error, CallRequest)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"The body is not {kind.name}: {error}.", code="bad_request") from None
    except RecursionError:
        shallow = False
    if not shallow:
        raise BadInput(f"input: nested deeper than {MAX_DEPTH}.", field="input")
    return request


def _decode(body: bytes, kind: BodyFormat) -> CallRequest:
    if kind is BodyFormat.JSON:
        return _json.decode(body) if body else CallRequest()
    return _msgpack.decode(body)


def refuse_job_fields(request: CallRequest) -> None:
    """Refuse fields that only jobs have.

    Raises:
        BadInput: naming the field.
    """
    for name in ("run_at", "expires_in_s", "keep_s"):
        if getattr(request, name) is not None:
            raise BadInput(f"{name}: only with 'Prefer: respond-async'.", field=name)


def _with_advice(refused: BadInput) -> BadInput:
    """A common mistake is `{"name": "Ada"}` for `{"input": {"name": "Ada"}}`."""
    if "unknown field" not in refused.detail:
        return refused
    return BadInput(f'{refused.detail} What the function takes belongs into "input".', **refused.more)


def wrong_shape(error: msgspec.ValidationError, kind: type[msgspec.Struct] | None = None) -> BadInput:
    """The refusal of well-formed JSON that is not a `kind`."""
    text = str(error)
    found = PLACE.fullmatch(text)
    sentence, place = (found[1], found[2]) if found else (text, "")
    unknown = UNKNOWN_FIELD.fullmatch(sentence)
    if unknown:
        place = f"{place}.{unknown[1]}".lstrip(".")
    field = place.replace("[...]", "").replace("[", ".").replace("]", "") or "body"
    said = unknown_field(field, kind) if unknown else plain(sentence)
    return BadInput(f"{field}: {said}{'' if said.endswith('?') else '.'}", field=field)


def json_depth_within(body: bytes, limit: int = MAX_DEPTH) -> bool:
    """Whether well-formed JSON nests at most `limit` deep below its outer object. Does not walk its values."""
    limit += 1
    if body.count(b"[") + body.count(b"{") <= limit:
        return True
    brackets = JSON_STRING.sub(b"", body).translate(ROUND, NOT_BRACKETS)
    for _ in range(limit):
        if not brackets:
            return True
        brackets = brackets.replace(b"()", b"")
    return not brackets


def pack_arguments(arguments: dict[str, Any]) -> bytes:
    """The arguments as msgpack.

    Raises:
        BadInput: msgpack cannot hold one of them.
    """
    try:
        return _pack.encode(arguments)
    except (OverflowError, TypeError, RecursionError) as error:
        raise BadInput(f"input: it cannot travel: {error}.", field="input") from None


def priority_of(own: Priority, wanted: bytes) -> Priority:
    """The function's own priority, or a lower one that the caller asks for.

    Raises:
        BadInput: `wanted` is no priority.
    """
    if not wanted:
        return own
    try:
        asked = Priority(wanted.decode("latin-1").strip().lower())
    except ValueError:
        raise BadInput(
            "Pilotlight-Priority: expected interactive, standard or batch.", field="Pilotlight-Priority"
        ) from None
    return max(own, asked, key=PRIORITIES.index)


def seconds_to_wait(deadline_ms: float | None, most: float) -> float:
    """How long a call may take in all: the caller's `deadline_ms`, at most `most` seconds.

    Raises:
        BadInput: it is not more than 0.
    """
    if deadline_ms is None:
        return most
    if not deadline_ms > 0:
        raise BadInput("deadline_ms: expected more than 0.", field="deadline_ms")
    return min(deadline_ms / 1000, most)
