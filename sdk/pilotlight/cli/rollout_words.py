"""Reads what people say of a rollout on a command line."""

from __future__ import annotations

import typer

from pilotlight.cli.arguments import read_part
from pilotlight_core.model.api.rollouts.rollout_api import OwnGuard
from pilotlight_core.model.rollouts.rollout_record import ANSWER_TOLERANCE


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


def read_answer_tolerance(text: str | None) -> float:
    """Return the part of `1%`; None: as much as rounding changes.

    Raises:
        typer.BadParameter: what else it is.
    """
    return ANSWER_TOLERANCE if text is None else read_part(text, "--answer-tolerance")


def read_weights(words: list[str]) -> dict[str, float]:
    """Return the weights of `cost=4`, by guard.

    Raises:
        typer.BadParameter: naming the word.
    """
    found = {}
    for word in words:
        name, _, number = word.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise typer.BadParameter(f"--weight {word!r}: expected GUARD=NUMBER, such as cost=4.") from None
        if not name or not 0.0 <= found[name] <= 100.0:
            raise typer.BadParameter(f"--weight {word!r}: expected a number from 0 to 100.")
    return found


def read_guards(words: list[str]) -> tuple[OwnGuard, ...]:
    """Return the guards of `loss=amount:score.loss`.

    Raises:
        typer.BadParameter: naming the word.
    """
    found = []
    for word in words:
        name, _, rest = word.partition("=")
        kind, _, field = rest.partition(":")
        if not name or kind not in {"event", "amount"} or not field:
            raise typer.BadParameter(f"--guard {word!r}: expected NAME=event:FIELD or NAME=amount:FIELD.")
        found.append(OwnGuard(name=name, kind=kind, field=field))
    return tuple(found)
