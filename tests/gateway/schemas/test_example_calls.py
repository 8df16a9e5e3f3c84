"""The examples of a function are calls that a caller could make."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.pipelines.pipeline import CallHook, Pipeline
from pilotlight_core.model.rehearsals.rehearsal import CheckExample, Rehearsal, WarmupExample
from pilotlight_core.model.spec import FunctionSpec, Mode
from pilotlight_gateway.schemas.example_calls import check_examples
from tests.builders.specs import function_spec, method

INPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
NUMBER = {"type": "integer"}
WIDE = method(input_schema={"properties": {"n": {"items": {"enum": list(range(8_000))}}}})
"""Costs more to check than it is long."""


def spec_of(mode: Mode = Mode.UNARY, **rehearsal: Any) -> FunctionSpec:
    one = method(input_schema=INPUT, output_schema=NUMBER, mode=mode)
    return function_spec("f", one, rehearsal=Rehearsal(**rehearsal))


def warm(value: Any) -> dict[str, Any]:
    return {"warmup": (WarmupExample(inputs=(values.encode(value),)),)}


def check(value: Any, output: Any) -> dict[str, Any]:
    return {"example": CheckExample(input=values.encode(value), output=values.encode(output))}


@pytest.mark.parametrize(
    "spec",
    [
        function_spec("f"),
        spec_of(),
        spec_of(**warm({"n": 1})),
        spec_of(**check({"n": 1}, 2)),
        spec_of(Mode.GENERATOR, **check({"n": 1}, [2, 3])),
        function_spec("f", rehearsal=Rehearsal(**warm({"image": np.zeros((2, 2)), "raw": b"x"}))),
    ],
)
def test_calls_that_fit_are_allowed(spec: FunctionSpec) -> None:
    """Also with arrays, which nobody opens here."""
    check_examples(spec)


@pytest.mark.parametrize(
    ("spec", "field", "why"),
    [
        (spec_of(**warm({"n": "1"})), "warmup", "f: warmup: f: input.n: "),
        (spec_of(**warm({})), "warmup", "input.n: this argument is missing"),
        (spec_of(**warm({"n": 1, "m": 2})), "warmup", "no such argument"),
        (spec_of(**warm([1])), "warmup", "no object of named arguments"),
        (spec_of(**warm({1: 2})), "warmup", "no object of named arguments"),
        (spec_of(warmup=(WarmupExample(inputs=(b"\xc1",)),)), "warmup", "cannot be read"),
        (spec_of(warmup=(WarmupExample(inputs=(b"\x91" * 500 + b"\x01",)),)), "warmup", "nested too deeply"),
        (function_spec("f", WIDE, rehearsal=Rehearsal(**warm({"n": [1] * 500}))), "warmup", "too many parts"),
        (spec_of(**check({"n": "1"}, 2)), "check", "f: check: f: input.n: "),
        (spec_of(**check({"n": 1}, "2")), "check", "f: check: f: output: "),
        (spec_of(Mode.GENERATOR, **check({"n": 1}, 2)), "check", "is the list of its chunks"),
        (spec_of(Mode.GENERATOR, **check({"n": 1}, ["a"])), "check", "output: "),
    ],
)
def test_others_are_refused_with_their_option(spec: FunctionSpec, field: str, why: str) -> None:
    """As a caller would be, and the deployer reads which argument it is."""
    with pytest.raises(BadInput) as refused:
        check_examples(spec)

    assert why in refused.value.detail
    assert refused.value.more["field"] == field


def test_a_version_keeps_its_name_however_it_is_read() -> None:
    """Examples are bytes, which JSON has as base64."""
    spec = spec_of(**warm({"n": 1}), checks=("a",))

    assert msgspec.json.decode(msgspec.json.encode(spec), type=FunctionSpec) == spec


def test_examples_of_a_class_with_hooks_are_the_methods_own() -> None:
    """Its schemas are those of its hooks, which a container does not run for them."""
    hook = CallHook(attribute="h", takes="answer")
    spec = spec_of(**check({"numbers": [1]}, "two"))
    with pytest.raises(BadInput):
        check_examples(spec)
    check_examples(msgspec.structs.replace(spec, pipeline=Pipeline(preprocess=hook, postprocess=hook)))
