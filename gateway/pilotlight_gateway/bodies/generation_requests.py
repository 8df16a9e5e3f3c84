"""Requests for text as OpenAI's clients send them, as fields of the document that engines take.

Values pass on as the bytes that came: the function's own schema checks them, as those of any call. Fields that nobody
knows are ignored and named; fields that are known, and that the answer would have to obey, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.call_requests import wrong_shape
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields, user_of
from pilotlight_gateway.bodies.request_fields import read_fields

MOST_STOPS = 16
MOST_LOGPROBS = 20
PASSED = (
    "messages", "prompt", "temperature", "top_p", "top_k", "seed", "max_tokens", "min_tokens", "ignore_eos", "tools",
    "tool_choice", "response_format",
)  # fmt: skip
"""Fields that mean the same in both documents."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,), "best_of": (1,), "echo": (False,), "suffix": ("",), "logit_bias": ({},), "presence_penalty": (0,),
    "frequency_penalty": (0,), "functions": ([],), "function_call": ("none", "auto"), "audio": (),
    "modalities": (["text"],), "prediction": (), "web_search_options": (), "repetition_penalty": (1,),
    "use_beam_search": (False,),
}  # fmt: skip
"""Fields that an answer would have to obey and that nothing here does -> values that ask for nothing."""
LONGEST_NEUTRAL = 64
"""Bytes of such a value."""
LONGEST_READ = 64 * 1024
"""Bytes of a field that is read here."""
READ = ("model", "stream", "stream_options", "stop", "max_completion_tokens", "logprobs", "top_logprobs", "user")
KNOWN = frozenset((*PASSED, *NEUTRAL, *READ))


class StreamOptions(msgspec.Struct, frozen=True):
    include_usage: bool = False
    continuous_usage_stats: bool = False


def read_chat(body: bytes) -> ModelRequest:
    """Read the body of a request for a chat's next message.

    Raises:
        BadInput: `bad_request`, naming the field.
    """
    given = read_fields(body, KNOWN)
    if "messages" not in given.known:
        raise missing("messages", "the messages of the chat so far")
    wants = read_value(given.known, "logprobs", bool, default=False)
    top = read_value(given.known, "top_logprobs", int, default=0)
    if top and not wants:
        raise BadInput("top_logprobs: only with logprobs=true.", code="bad_request", field="top_logprobs")
    return _request(given.known, given.unknown, leave_out=("prompt",), logprobs=top if wants else None)


def read_completion(body: bytes) -> ModelRequest:
    """Read the body of a request to complete a text.

    Raises:
        BadInput: `bad_request`, naming the field.
    """
    given = read_fields(body, KNOWN)
    if "prompt" not in given.known:
        raise missing("prompt", "the text to complete")
    logprobs = read_value(given.known, "logprobs", int | None, default=None)
    request = _request(given.known, given.unknown, leave_out=("messages", "tools", "tool_choice"), logprobs=logprobs)
    fields = dict(request.fields)
    name, prompt = _prompt(fields.pop("prompt"))
    fields[name] = prompt
    return ModelRequest(
        model=request.model, stream=request.stream, include_usage=request.include_usage,
        usage_so_far=request.usage_so_far, fields=fields, ignored=request.ignored, user=request.user,
    )  # fmt: skip


def _request(
    known: RawFields, unknown: tuple[str, ...], *, leave_out: tuple[str, ...], logprobs: int | None
) -> ModelRequest:
    refuse_unsupported(known, NEUTRAL)
    model = read_model(known)
    fields = {name: known[name] for name in PASSED if name in known and name not in leave_out}
    if "max_completion_tokens" in known:
        fields["max_tokens"] = known["max_completion_tokens"]
    if (stops := _stops(known)) is not None:
        fields["stop"] = msgspec.Raw(msgspec.json.encode(stops))
    if fields.get("response_format") is not None and _is_plain_text(fields["response_format"]):
        del fields["response_format"]
    if logprobs is not None:
        if not 0 <= logprobs <= MOST_LOGPROBS:
            field = "top_logprobs" if "top_logprobs" in known else "logprobs"
            raise BadInput(f"{field}: expected 0 to {MOST_LOGPROBS}.", code="bad_request", field=field)
        fields["logprobs"] = msgspec.Raw(b"%d" % logprobs)
    options = read_value(known, "stream_options", StreamOptions | None, default=None)
    stream = bool(read_value(known, "stream", bool | None, default=False))
    return ModelRequest(
        model=model, stream=stream, include_usage=stream and options is not None and options.include_usage,
        usage_so_far=stream and options is not None and options.continuous_usage_stats,
        fields=fields, ignored=(*unknown, *(name for name in leave_out if name in known)), user=user_of(known),
    )  # fmt: skip


def read_model(known: RawFields) -> str:
    """The model that a request names. Raises BadInput."""
    model: str = read_value(known, "model", str, default="")
    if not model:
        raise missing("model", "the name of a model (GET /v1/models)")
    return model


def refuse_unsupported(known: RawFields, neutral: Mapping[str, tuple[Any, ...]]) -> None:
    """Refuse fields whose value asks for what nothing here does. Raises BadInput."""
    for name, values in neutral.items():
        if (raw := known.get(name)) is not None and not _is_neutral(raw, values):
            allowed = f" other than {', '.join(msgspec.json.encode(one).decode() for one in values)}" if values else ""
            raise BadInput(f"{name}{allowed} is not supported: leave it out.", code="bad_request", field=name)


def missing(field: str, what: str) -> BadInput:
    """The refusal of a request that lacks a field."""
    return BadInput(f"{field} is missing: expected {what}.", code="bad_request", field=field)


def _is_neutral(raw: msgspec.Raw, values: tuple[Any, ...]) -> bool:
    return len(memoryview(raw)) <= LONGEST_NEUTRAL and msgspec.json.decode(raw) in values


def _stops(known: RawFields) -> list[str] | None:
    stops = read_value(known, "stop", str | list[str] | None, default=None)
    if stops is None:
        return None
    if len(stops) > MOST_STOPS and not isinstance(stops, str):
        raise BadInput(f"stop: expected at most {MOST_STOPS} texts.", code="bad_request", field="stop")
    return [stops] if isinstance(stops, str) else stops


def _prompt(raw: msgspec.Raw) -> tuple[str, msgspec.Raw]:
    """A prompt's name and value in the generation document: one text, or the ids of its tokens."""
    first, second = _begins(raw)
    if first == b'"':
        return "prompt", raw
    if first == b"[" and second.isdigit():
        return "prompt_ids", raw
    if first != b"[" or second not in (b'"', b"["):
        raise BadInput("prompt: expected a text, or a list of token ids.", code="bad_request", field="prompt")
    try:
        (only,) = msgspec.json.decode(raw, type=tuple[msgspec.Raw])
    except (msgspec.ValidationError, RecursionError):
        raise BadInput(
            "prompt: several prompts in one request are not supported: send one, or a batch of requests.",
            code="bad_request", field="prompt",
        ) from None  # fmt: skip
    return ("prompt" if second == b'"' else "prompt_ids"), only.copy()


def _begins(raw: msgspec.Raw) -> tuple[bytes, bytes]:
    """The first character of a value, and, of a list, that of its first item."""
    head = bytes(memoryview(raw)[:64])
    return head[:1], head[1:].lstrip()[:1]


def _is_plain_text(raw: msgspec.Raw) -> bool:
    return len(memoryview(raw)) <= LONGEST_NEUTRAL and msgspec.json.decode(raw) == {"type": "text"}


def read_value(known: RawFields, name: str, kind: Any, *, default: Any, most: int | None = LONGEST_READ) -> Any:
    """A field of at most so many bytes as a `kind`; null and an absent one are the default. Raises BadInput."""
    raw = known.get(name)
    if raw is None:
        return default
    if most is not None and len(memoryview(raw)) > most:
        raise BadInput(f"{name}: longer than {most} bytes.", code="bad_request", field=name)
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        refused = wrong_shape(error)
        within = "" if refused.more["field"] == "body" else f".{refused.more['field']}"
        text = refused.detail.partition(": ")[2]
        raise BadInput(f"{name}{within}: {text}", code="bad_request", field=f"{name}{within}") from None
    except (RecursionError, msgspec.DecodeError):
        raise BadInput(f"{name}: it cannot be read.", code="bad_request", field=name) from None
