"""Command lines that work as printed, with example arguments from a function's schema."""

from __future__ import annotations

import os
import shlex
from typing import Any

import msgspec

from pilotlight.client.transport.config import API_KEY
from pilotlight_core.model.schema_examples import example_arguments
from pilotlight_core.model.spec import MethodSpec, Mode


def curl_line(url: str, method: MethodSpec) -> str:
    """Return a curl command for an endpoint; its key comes from the environment or the client's file."""
    body: dict[str, Any] = {"input": example_arguments(method.input_schema)}
    if method.name:
        body = {"method": method.name, **body}
    key = f"${API_KEY}" if os.environ.get(API_KEY) else "$(pilotlight key show)"
    stream = ["-N", "-H", shlex.quote("Accept: text/event-stream")] if method.mode is Mode.GENERATOR else []
    words = [
        *("curl", shlex.quote(url), *stream, "-H", f'"Authorization: Bearer {key}"'),
        *("-H", shlex.quote("Content-Type: application/json"), "-d", shlex.quote(msgspec.json.encode(body).decode())),
    ]
    return " ".join(words)


def call_line(ref: str, method: MethodSpec) -> str:
    """Return the same with `pilotlight call`."""
    arguments = example_arguments(method.input_schema)
    words = [f"{name}={shlex.quote(_typed(value))}" for name, value in arguments.items()]
    return " ".join(["pilotlight call", f"{ref}.{method.name}" if method.name else ref, *words])


def _typed(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        return text
    try:
        msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value  # it cannot be taken for anything but a string
    return text
