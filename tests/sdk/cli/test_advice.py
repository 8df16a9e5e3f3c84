"""Advice on errors, in the terms of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer

from pilotlight.cli.advice import HERE, advice, advising
from pilotlight.cli.main import COMMANDS, module_of
from pilotlight.definitions.errors import NotConfigured, PilotlightError, TooMuch, Unreachable
from pilotlight.definitions.hints import migration_hints, peer_names
from pilotlight_core.model.errors import CODES, error_from_code

OF_PROGRAMS = re.compile(r"\b(GET|POST|Retry-After|header|send|Send|Accept|Allow|application/json|Bearer)\b")


@pytest.mark.parametrize("code", CODES)
def test_no_advice_is_about_requests(code: str) -> None:
    """No code's advice mentions a request, which a person does not send."""
    assert not OF_PROGRAMS.search(advice(error_from_code(code, "no")))


def test_advice_has_the_wait() -> None:
    """A wait that is too short to notice is left out."""
    assert advice(TooMuch("no", retry_after=2.34)) == "Run the command again in 2.3 s."
    assert advice(TooMuch("no", retry_after=0.01)) == "Run the command again."


def test_errors_of_this_side_have_their_own_advice() -> None:
    """An unreachable platform is an example."""
    assert "pilotlight up" in advice(Unreachable("no"))
    assert "PILOTLIGHT_URL" in advice(NotConfigured("no"))


def test_a_command_may_give_other_advice() -> None:
    """It replaces the advice of the codes that it names."""
    for code, expected in (("conflict", "Wait."), ("not_found", "Check the name.")):
        with pytest.raises(PilotlightError) as caught, advising(conflict="Wait."):
            raise error_from_code(code, "no")
        assert advice(caught.value) == expected


def commands_in(text: str) -> Iterator[list[str]]:
    """The command lines that a text names: what stands in quotation marks after `pilotlight`."""
    for found in re.findall(r"'pilotlight ([^']+)'", text):
        yield found.split()


def texts() -> Iterator[str]:
    """Every advice, hint and refusal that may name a command."""
    yield from (meaning.advice for meaning in CODES.values())
    yield from HERE.values()
    for module in (migration_hints, peer_names):
        yield from (
            text
            for table in vars(module).values()
            if isinstance(table, dict)
            for text in table.values()
            if isinstance(text, str)
        )


@pytest.mark.parametrize("words", [words for text in texts() for words in commands_in(text)], ids=" ".join)
def test_a_command_that_is_advised_exists(words: list[str]) -> None:
    """With the options that are named beside it."""
    name, *rest = words
    assert name in COMMANDS
    command: Any = typer.main.get_command(import_module(module_of(name)).app)
    if hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    known = {flag for parameter in command.params for flag in parameter.opts}
    assert {word for word in rest if word.startswith("-")} <= known


def test_nothing_is_advised_that_there_is_not() -> None:
    """A function has no network, so it reads no bucket."""
    assert not [text for text in texts() if "bucket" in text]
