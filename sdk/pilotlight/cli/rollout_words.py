"""Reads what people say of a rollout on a command line."""

from __future__ import annotations

import typer

from pilotlight.cli.arguments import read_part


def read_steps(text: str) -> tuple[float, ...]:
    """Return `1,5,25,50,100` as percent that rise.

    Raises:
        typer.BadParameter: what else it is.
    """
    try:
        steps = tuple(float(word) for word in text.removesuffix("%").split(","))
    except ValueError:
        steps = ()
    if not steps or any(not 0.0 < step <= 100.0 for step in steps) or list(steps) != sorted(set(steps)):
        raise typer.BadParameter(f"--steps {text!r}: expected percent that rise, such as 1,5,25,50,100.")
    return steps


def read_headers(words: list[str]) -> dict[str, str]:
    """Return the headers of `x-name=value`.

    Raises:
        typer.BadParameter: naming the word.
    """
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.lower().startswith("x-"):
            raise typer.BadParameter(f"--cohort-header {word!r}: expected x-name=value.")
        found[name.lower()] = value
    return found


def read_tolerance(text: str | None) -> float | None:
    """Return the part of `5%`; None: the platform's own.

    Raises:
        typer.BadParameter: what else it is.
    """
    return None if text is None else read_part(text, "--tolerance")
