"""What a served function takes of a generation document: the fields that its own schema has.

An engine takes all of them. Any other function can be a model as well: what it has no parameter for is left out, and
named, where an answer is still one without it, and refused where it is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_gateway.bodies.model_request import RawFields

GENERATE, EMBED = "generate", "embed"
"""Methods of engines, and of other classes that are served."""
OBEYED = ("tools", "tool_choice", "response_format", "logprobs", "stop", "min_tokens", "ignore_eos")
"""Fields without which the answer is another one than was asked for."""
ROUTES = {"messages": "/v1/chat/completions", "prompt": "/v1/completions"}
"""What a request has to have -> where it is sent."""


class FittedInput(NamedTuple):
    """The arguments of a call, and the fields that were left out."""

    arguments: RawFields
    ignored: tuple[str, ...]


def method_called(spec: FunctionSpec, name: str) -> MethodSpec:
    """The method of a served function that is called `name`, or its only one.

    Raises:
        BadInput: it has several others.
    """
    for method in spec.methods:
        if method.name == name:
            return method
    if len(spec.methods) == 1:
        return spec.methods[0]
    known = ", ".join(method.name for method in spec.methods)
    raise BadInput(
        f"model: its function {spec.name} has no method {name}, but {known}: call one of them by its own address.",
        code="bad_request", field="model",
    )  # fmt: skip


def fitted(method: MethodSpec, fields: RawFields, model: str) -> FittedInput:
    """The fields that a method takes.

    Raises:
        BadInput: it takes none of what the request is about, or not what the answer has to obey.
    """
    taken = parameters_of(method)
    if taken is None:
        return FittedInput(fields, ())
    for name, other in (("messages", "prompt"), ("prompt", "messages"), ("prompt_ids", "prompt")):
        if name in fields and name not in taken:
            if name == "prompt_ids" or other not in taken:
                what = "token ids" if name == "prompt_ids" else name
                raise BadInput(f"{model} takes no {what}.", code="bad_request", field=name)
            raise BadInput(
                f"{model} takes {_article(other)}, and no {name}: send it to {ROUTES[other]}.",
                code="bad_request", field=name,
            )  # fmt: skip
    for name in OBEYED:
        if name in fields and name not in taken:
            raise BadInput(f"{name} is not supported by {model}: leave it out.", code="bad_request", field=name)
    arguments = {name: raw for name, raw in fields.items() if name in taken}
    return FittedInput(arguments, tuple(name for name in fields if name not in taken))


def parameters_of(method: MethodSpec) -> Mapping[str, Any] | None:
    """The schemas of a method's parameters by name; None: it takes any."""
    schema = method.input_schema
    if not schema or schema.get("additionalProperties", True) is not False:
        return None
    properties: dict[str, Any] = schema.get("properties", {})
    return properties


def call_body(method: MethodSpec, arguments: RawFields, deadline_ms: float | None) -> bytes:
    """The body of a native call with these arguments."""
    body: dict[str, Any] = {"input": dict(arguments)}
    if method.name:
        body["method"] = method.name
    if deadline_ms is not None:
        body["deadline_ms"] = deadline_ms
    return msgspec.json.encode(body)


def _article(name: str) -> str:
    return "messages" if name == "messages" else "a prompt"
