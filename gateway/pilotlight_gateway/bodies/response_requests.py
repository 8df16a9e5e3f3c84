"""Requests of `/v1/responses` as fields of the generation document.

Nothing is kept between two requests: a client sends the whole conversation each time, as with chats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.bodies.call_requests import JSON_STRING
from pilotlight_gateway.bodies.generation_requests import (
    MOST_LOGPROBS,
    missing,
    read_model,
    read_value,
    refuse_unsupported,
)
from pilotlight_gateway.bodies.model_request import ModelRequest, RawFields, user_of
from pilotlight_gateway.bodies.request_fields import read_fields

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "previous_response_id": (), "conversation": (), "background": (False,), "prompt": (),
    "truncation": ("disabled", "auto"),
}  # fmt: skip
"""Fields that an answer would have to obey and that nothing here does -> values that ask for nothing."""
READ = (
    "model", "input", "instructions", "stream", "tools", "tool_choice", "text", "max_output_tokens", "temperature",
    "top_p", "top_logprobs", "include", "parallel_tool_calls", "metadata",
)  # fmt: skip
KNOWN = frozenset((*READ, *NEUTRAL, "user"))
PASSED = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
LOGPROBS = "message.output_text.logprobs"
"""What `include` asks for of what is known here; what else it names, an answer has not."""
MOST_ITEMS = 20_000
"""Of an input, with their parts: each becomes a value here."""
TEXTS = ("text", "input_text", "output_text", "refusal")
LONGEST_TOOLS = 1_000_000
"""Bytes of the tools, or of the schema that an answer has to keep."""
KEPT = ("instructions", "temperature", "top_p", "tools", "tool_choice", "max_output_tokens", "metadata")
"""Fields that an answer repeats."""
LONGEST_KEPT = 16 * 1024
"""Bytes of such a field; a longer one is not repeated."""


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message."""

    type: str
    text: str = ""
    refusal: str = ""


class InputItem(msgspec.Struct, frozen=True):
    """One thing that was said, called or answered."""

    type: str = "message"
    role: str = ""
    content: str | tuple[ContentPart, ...] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    output: str | tuple[ContentPart, ...] | None = None


class FunctionTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool that the client calls itself."""

    type: str
    name: str = ""
    description: str | None = None
    parameters: msgspec.Raw = msgspec.Raw(b"null")
    strict: bool | None = None


class TextFormat(msgspec.Struct, frozen=True):
    type: str = "text"
    name: str = "answer"
    schema: msgspec.Raw = msgspec.Raw(b"null")
    strict: bool | None = None
    description: str | None = None


class TextOptions(msgspec.Struct, frozen=True):
    format: TextFormat = TextFormat()


class NamedTool(msgspec.Struct, frozen=True):
    type: str
    name: str = ""


def read_response(body: bytes) -> ModelRequest:
    """Read the body of a request for a response, with what its answer repeats of it.

    Raises:
        BadInput: `bad_request`, naming the field.
    """
    known, unknown = read_fields(body, KNOWN)
    refuse_unsupported(known, NEUTRAL)
    model = read_model(known)
    if "input" not in known:
        raise missing("input", "a text, or the items of a conversation")
    fields: dict[str, msgspec.Raw] = {PASSED[name]: known[name] for name in PASSED if name in known}
    fields["messages"] = _raw(list(_messages(known)))
    if tools := read_value(known, "tools", list[FunctionTool] | None, default=None, most=LONGEST_TOOLS):
        fields["tools"] = _raw([_tool(tool) for tool in tools])
    if (choice := read_value(known, "tool_choice", str | NamedTool | None, default=None)) is not None:
        fields["tool_choice"] = _raw(_choice(choice))
    if (form := _format(known)) is not None:
        fields["response_format"] = form
    if (logprobs := _logprobs(known)) is not None:
        fields["logprobs"] = _raw(logprobs)
    stream = bool(read_value(known, "stream", bool | None, default=None))
    short = [name for name in KEPT if name in known and memoryview(known[name]).nbytes <= LONGEST_KEPT]
    kept = {name: known[name].copy() for name in short}
    return ModelRequest(model=model, stream=stream, fields=fields, ignored=unknown, kept=kept, user=user_of(known))


def _messages(known: RawFields) -> Iterator[dict[str, Any]]:
    instructions: str | None = read_value(known, "instructions", str | None, default=None, most=None)
    if instructions:
        yield {"role": "system", "content": instructions}
    raw = known["input"]
    if bytes(memoryview(raw)[:1]) == b'"':
        yield {"role": "user", "content": read_value(known, "input", str, default="", most=None)}
        return
    text = bytes(raw)
    if text.count(b"{") > MOST_ITEMS and JSON_STRING.sub(b"", text).count(b"{") > MOST_ITEMS:
        raise BadInput(f"input: more than {MOST_ITEMS} items and parts.", code="bad_request", field="input")
    yield from _joined(read_value(known, "input", list[InputItem], default=[], most=None))


def _joined(items: list[InputItem]) -> Iterator[dict[str, Any]]:
    """Messages; calls of tools that follow each other are one message."""
    calls: list[dict[str, Any]] = []
    for number, item in enumerate(items):
        if item.type == "function_call":
            function = {"name": item.name, "arguments": item.arguments}
            calls.append({"id": item.call_id, "type": "function", "function": function})
            continue
        if calls:
            yield {"role": "assistant", "content": None, "tool_calls": calls}
            calls = []
        if item.type == "function_call_output":
            yield {"role": "tool", "tool_call_id": item.call_id, "content": _content(item.output, number)}
        elif item.type == "message" and item.role:
            yield {"role": item.role, "content": _content(item.content, number)}
        elif item.type != "reasoning":  # what a model thought is no part of what was said
            raise BadInput(
                f"input.{number}: an item of type {item.type[:64]!r} is not supported: expected messages with a role, "
                "function_call and function_call_output.",
                code="bad_request", field=f"input.{number}.type",
            )  # fmt: skip
    if calls:
        yield {"role": "assistant", "content": None, "tool_calls": calls}


def _content(content: str | tuple[ContentPart, ...] | None, number: int) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in TEXTS:
            raise BadInput(
                f"input.{number}.content: a part of type {part.type[:64]!r} is not supported: expected text.",
                code="bad_request", field=f"input.{number}.content",
            )  # fmt: skip
    return "".join(part.text or part.refusal for part in content)


def _tool(tool: FunctionTool) -> dict[str, Any]:
    if tool.type != "function" or not tool.name:
        raise BadInput(
            f"tools: a tool of type {tool.type[:64]!r} is not supported: expected functions with a name.",
            code="bad_request", field="tools",
        )  # fmt: skip
    more: dict[str, Any] = {"description": tool.description, "strict": tool.strict}
    function = {"name": tool.name, "parameters": tool.parameters}
    return {
        "type": "function",
        "function": function | {name: value for name, value in more.items() if value is not None},
    }


def _choice(choice: str | NamedTool) -> Any:
    if isinstance(choice, str):
        return choice
    if choice.type != "function":
        raise BadInput(
            "tool_choice: expected auto, none, required or a function.", code="bad_request", field="tool_choice"
        )
    return {"type": "function", "function": {"name": choice.name}}


def _format(known: RawFields) -> msgspec.Raw | None:
    options: TextOptions | None = read_value(known, "text", TextOptions | None, default=None, most=LONGEST_TOOLS)
    if options is None or options.format.type == "text":
        return None
    form = options.format
    if form.type == "json_object":
        return _raw({"type": "json_object"})
    if form.type != "json_schema":
        raise BadInput(
            "text.format: expected text, json_object or json_schema.", code="bad_request", field="text.format"
        )
    schema: dict[str, Any] = {"name": form.name, "schema": form.schema}
    if form.strict is not None:
        schema["strict"] = form.strict
    return _raw({"type": "json_schema", "json_schema": schema})


def _logprobs(known: RawFields) -> int | None:
    top: int | None = read_value(known, "top_logprobs", int | None, default=None)
    asked: list[str] = read_value(known, "include", list[str] | None, default=None) or []
    if top is not None and not 0 <= top <= MOST_LOGPROBS:
        raise BadInput(f"top_logprobs: expected 0 to {MOST_LOGPROBS}.", code="bad_request", field="top_logprobs")
    return (top or 0) if top or LOGPROBS in asked else None


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
