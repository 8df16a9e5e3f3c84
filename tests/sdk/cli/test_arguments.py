"""Words of a command line: arguments, refs and times, and errors for those that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from pilotlight.cli.arguments import read_arguments, read_ref, read_span, read_value
from pilotlight_core.model.errors import BadInput


@pytest.mark.parametrize(
    ("words", "whole", "message"),
    [
        (["Ada"], None, "'Ada' has no value: expected name=value, write Ada=VALUE."),
        (["two words"], None, "in quotes if it has spaces: text='two words'"),
        (["=3"], None, "'=3' has no name"),
        (["a=1", "a=2"], None, "'a=2': a is given twice."),
        ([], "[1]", "expected a JSON object of arguments"),
        ([], "{", "expected a JSON object of arguments"),
        ([], "@missing.json", "--input: No such file or directory: missing.json"),
    ],
)
def test_arguments_that_cannot_be_read_are_named(words: list[str], whole: str | None, message: str) -> None:
    """The error names the word and the expected form."""
    with pytest.raises(typer.BadParameter) as caught:
        read_arguments(words, whole)
    assert message in str(caught.value)


def test_single_arguments_override_the_whole(tmp_path: Path) -> None:
    """A file gives the arguments that are not single words."""
    (tmp_path / "in.json").write_text('{"a": 1, "b": 2}')
    assert read_arguments(["b=3"], f"@{tmp_path / 'in.json'}") == {"a": 1, "b": 3}
    assert read_arguments([], None) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ('"3"', "3"),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ("Ada", "Ada"),
        ("", ""),
        ("{", "{"),
        ("1e400", "1e400"),
    ],
)
def test_a_value_is_json_if_it_can_be(text: str, value: Any) -> None:
    """Any other value is text."""
    assert read_value(text) == value


@pytest.mark.parametrize("text", ["soon", "12", "h", "-1h", "1.5h", "1h30m", "1234567s", ""])
def test_a_malformed_time_is_refused(text: str) -> None:
    """The error names the option."""
    with pytest.raises(typer.BadParameter, match=r"--expires .*: expected a time such as 12h or 30d\."):
        read_span(text, "--expires")


def test_a_time_is_seconds() -> None:
    """Each unit is converted."""
    assert [read_span(text, "--wait") for text in ("90s", "15m", "12h", "30d")] == [90.0, 900.0, 43_200.0, 2_592_000.0]


@pytest.mark.parametrize("text", ["", "a", "a..b", "a.b@", "a.b.c.d", "a b.c"])
def test_a_malformed_ref_is_refused(text: str) -> None:
    """The error is that of the platform."""
    with pytest.raises(BadInput):
        read_ref(text, None)


@pytest.mark.parametrize(
    ("text", "method", "ref", "found"),
    [
        ("hello.greet", None, "hello.greet", None),
        ("hello.Model.embed@v2", None, "hello.Model@v2", "embed"),
        ("zoo:hello.Model.embed", None, "zoo:hello.Model", "embed"),
        ("hello.Model", "embed", "hello.Model", "embed"),
    ],
)
def test_a_method_may_stand_in_the_ref(text: str, method: str | None, ref: str, found: str | None) -> None:
    """A method follows the class, before the version."""
    read, name = read_ref(text, method)
    assert (str(read), name) == (ref, found)
