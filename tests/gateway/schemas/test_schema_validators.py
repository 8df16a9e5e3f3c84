"""Inputs and outputs are judged by compiled schemas, and the first thing wrong is named by its path."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.schemas.schema_validators import Validators, check_schemas
from tests.gateway.world import HELLO, function
from tests.work_done import calls_made

ARRAY = msgspec.msgpack.Ext(1, b"whatever")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"name": 3}, "input.name"),
        ({}, "input.name"),
        ({"name": "x", "times": [1, "2"]}, "input.times.1"),
        ({"name": "x", "color": "red"}, "input.color"),
        ({"name": b"bytes", "times": 1}, "input.times"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], field: str) -> None:
    """The path of the value that does not fit, also of one that is absent or not expected."""
    with pytest.raises(BadInput) as caught:
        Validators().check_input("ver_1", HELLO, arguments, {})

    assert caught.value.more["field"] == field


def test_an_argument_is_named_where_it_stood() -> None:
    """An argument given as a parameter is wrong as a parameter."""
    with pytest.raises(BadInput) as caught:
        Validators().check_input("ver_1", HELLO, {"name": 3}, {"name": "parameters"})

    assert caught.value.more["field"] == "parameters.name"


def test_bytes_and_arrays_are_judged_by_their_stand_ins() -> None:
    """Bytes pass as a string, an array as a list, whatever is in it."""
    method = MethodSpec(
        name="",
        attribute="f",
        input_schema={
            "type": "object",
            "properties": {"raw": {"type": "string"}, "array": {"type": ["array", "number"]}},
        },
    )

    Validators().check_input("ver_1", method, {"raw": b"x", "array": ARRAY}, {})
    with pytest.raises(BadInput, match=r"input\.raw"):
        Validators().check_input("ver_1", method, {"raw": ARRAY}, {})


def test_an_answer_that_breaks_its_own_promise_is_bad_output() -> None:
    """The function's type hints bind the function."""
    method = MethodSpec(name="", attribute="f", output_schema={"type": "array", "items": {"type": "number"}})
    validators = Validators()

    validators.check_output("ver_1", method, [1, 2.5, float("nan"), float("inf")])
    with pytest.raises(BadOutput) as caught:
        validators.check_output("ver_1", method, [1, "two"])

    assert caught.value.more["field"] == "output.1"


def test_a_message_does_not_repeat_a_large_value() -> None:
    """What is said about a megabyte is short."""
    with pytest.raises(BadInput) as caught:
        Validators().check_input("ver_1", HELLO, {"name": "x", "times": ["y" * 10**6]}, {})

    assert len(caught.value.detail) < 500


def test_compiled_schemas_are_bounded() -> None:
    """The version not used for longest is forgotten first."""
    validators = Validators(most=2)
    for version in ("a", "b", "a", "c"):
        validators.check_input(version, HELLO, {"name": "x"}, {})

    assert [key[0] for key in validators._compiled] == ["a", "c"]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strange"}, "not a JSON Schema"),
        ({"pattern": "(?=look)ahead"}, "not a JSON Schema"),
        ({"pattern": "(a{1000}){1000}"}, "not a JSON Schema"),
        ({"$ref": "http://127.0.0.1/"}, "leads out"),
    ],
)
def test_a_spec_with_a_bad_schema_is_refused_by_method(schema: dict[str, Any], said: str) -> None:
    """Deploying names the function, the method and which of its schemas."""
    spec = function("f", MethodSpec(name="", attribute="go", output_schema=schema))

    with pytest.raises(BadInput, match=said) as caught:
        check_schemas(spec)

    assert caught.value.more["field"] == "f.go.output_schema"


MANY = [f"{number:x}" for number in range(6_000)]


@pytest.mark.parametrize(
    ("items", "value"),
    [
        ({"required": MANY}, [{}] * 1_000),
        ({"anyOf": [{"required": MANY}, {"type": "string"}]}, [{}] * 1_000),
        ({"enum": [[number] for number in range(7_000)]}, [[6_999]] * 20_000),
        ({"anyOf": [{"const": [number]} for number in range(2_000)]}, [1] * 10_000),
        ({"type": "string", "not": {"pattern": "[ab]*a[ab]{60}c"}}, ["aab" * 400_000]),
        ({"multipleOf": 1e-300}, [1e300] * 100_000),
    ],
)
def test_a_schema_and_an_input_that_together_take_too_long_are_refused_at_once(items: Any, value: list[Any]) -> None:
    """Each of these stopped the gateway for all tenants for many seconds, or took gigabytes."""
    method = MethodSpec(name="", attribute="f", input_schema={"properties": {"x": {"type": "array", "items": items}}})
    check_schemas(function("f", method))
    refused = []

    def check() -> None:
        with pytest.raises(BadInput) as caught:
            Validators().check_input("ver_1", method, {"x": value}, {})
        refused.append(caught.value.more["field"])

    assert calls_made(check) < 1_000_000  # a check of all would make six million and more
    assert refused == ["input"]
