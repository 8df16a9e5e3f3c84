"""Reads words of a command line: arguments as `name=value`, refs, and times."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import typer

from pilotlight_core.model.ids import Ref, parse_ref

SPAN = re.compile(r"(\d{1,6})([smhd])")
PART = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)(%?)")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def read_arguments(words: list[str], whole: str | None) -> dict[str, Any]:
    """Return the arguments of `--input` (JSON, @FILE, or - for stdin), with each `name=value` over them.

    Raises:
        typer.BadParameter: naming the word.
    """
    named: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            hint = f"write {word}=VALUE" if word.isidentifier() else "in quotes if it has spaces: text='two words'"
            missing = "name" if equals else "value"
            raise typer.BadParameter(f"{word!r} has no {missing}: expected name=value, {hint}.")
        if name in named:
            raise typer.BadParameter(f"{word!r}: {name} is given twice.")
        named[name] = read_value(text)
    return {**({} if whole is None else _object(whole)), **named}


def read_value(text: str) -> Any:
    """Return the value of JSON, else the text: `3` is a number, `'"3"'` a string."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def read_span(text: str, option: str) -> float:
    """Return the seconds of `90s`, `15m`, `12h` or `30d`.

    Raises:
        typer.BadParameter: naming the option.
    """
    found = SPAN.fullmatch(text)
    if found is None:
        raise typer.BadParameter(f"{option} {text!r}: expected a time such as 12h or 30d.")
    return float(int(found[1]) * SECONDS[found[2]])


def read_part(text: str, option: str) -> float:
    """Return the part, from 0 to 1, of `20%` or `0.2`.

    Raises:
        typer.BadParameter: naming the option.
    """
    found = PART.fullmatch(text)
    part = float(found[1]) / (100.0 if found[2] else 1.0) if found is not None else 2.0
    if part > 1.0:
        raise typer.BadParameter(f"{option} {text!r}: expected a part such as 20%, at most 100%.")
    return round(part, 12)


def read_ref(text: str, method: str | None) -> tuple[Ref, str | None]:
    """Return the ref and method of `app.function` or `app.Class.method`.

    Raises:
        BadInput: naming what is wrong.
    """
    name, at, pin = text.partition("@")
    parts = name.split(".")
    if method is None and len(parts) == 3:
        name, method = ".".join(parts[:2]), parts[2]
    return parse_ref(name + at + pin), method


def _object(text: str) -> dict[str, Any]:
    try:
        data = sys.stdin.read() if text == "-" else Path(text[1:]).read_text() if text.startswith("@") else text
        return msgspec.json.decode(data, type=dict[str, Any])
    except OSError as error:
        raise typer.BadParameter(f"--input: {error.strerror}: {text[1:]}") from None
    except msgspec.DecodeError as error:
        raise typer.BadParameter(f"--input: {error}: expected a JSON object of arguments") from None
