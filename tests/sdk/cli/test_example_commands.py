"""Command lines with example arguments: a schema accepts them, and a shell takes them as they are printed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from pilotlight import App, batched, method
from pilotlight.cli.arguments import read_arguments
from pilotlight.cli.example_commands import call_line, curl_line
from pilotlight_core.model.schema_examples import example_arguments
from pilotlight_core.model.spec import FunctionSpec
from tests.sdk.definitions.schemas.test_schema import Colour, Match, Point, Tree

apps = App("examples")


@apps.gpu_function
def every(
    text: str, match: Match, colour: Colour, point: Point, tree: Tree, pair: tuple[int, str], many: list[int]
) -> None: ...


@apps.gpu_function
def some(number: int | None, flag: bool, share: float, data: bytes, more: dict[str, int] = {"a": 1}) -> None: ...  # noqa: B006


@apps.gpu_function
class Model:
    @method()
    def ask(self, question: str = "why?") -> str:
        return question

    @batched(max_batch_size=2)
    def embed(self, text: list[str]) -> list[int]:
        return [len(item) for item in text]


@apps.gpu_function
def count(upto: int) -> Iterator[int]:
    yield from range(upto)


def specs() -> list[FunctionSpec]:
    return [function.spec for function in apps.functions.values()]


@pytest.mark.parametrize("spec", specs(), ids=lambda spec: spec.name)
def test_example_arguments_are_accepted(spec: FunctionSpec) -> None:
    """They pass the schema by the gateway's own validator."""
    for found in spec.methods:
        jsonschema_rs.validator_for(found.input_schema).validate(example_arguments(found.input_schema))


def test_printed_lines_quote_what_a_shell_would_take_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are quoted, and a missing key is read by a command."""
    ask: Any = specs()[2].methods[0]
    assert call_line("a.Model", ask) == "pilotlight call a.Model.ask question='why?'"
    monkeypatch.delenv("PILOTLIGHT_API_KEY", raising=False)
    assert '"method":"ask"' in curl_line("http://x", ask)
    assert "$(pilotlight key show)" in curl_line("http://x", ask)


@pytest.mark.parametrize("text", ["3", "true", "null", '{"a": 1}', "two words", "$HOME", "it's", ""])
def test_a_string_stays_a_string(text: str) -> None:
    """A word that would be read as JSON, or taken apart by a shell, is quoted."""
    spec = App("examples").gpu_function(name="echo")(_echo_of(text)).spec
    (word,) = shlex.split(call_line("a.echo", spec.methods[0]))[3:]
    assert read_arguments([word], None) == {"text": text}


def _echo_of(default: str) -> Any:
    def echo(text: str = default) -> str:
        return text

    return echo


def test_a_generator_is_called_as_a_stream_of_events() -> None:
    """curl prints the chunks as they come, and the key is that of the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PILOTLIGHT_API_KEY", "k")
        line = curl_line("http://x/calls?a=1&b=2", count.spec.methods[0])
    words = shlex.split(line)
    assert words[:5] == ["curl", "http://x/calls?a=1&b=2", "-N", "-H", "Accept: text/event-stream"]
    assert "Authorization: Bearer $PILOTLIGHT_API_KEY" in words
