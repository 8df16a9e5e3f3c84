"""What schemas say of parameters and answers, as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pilotlight.definitions.schemas.schema import schema_of
from pilotlight_gateway.tensors.value_kinds import (
    UNKNOWN,
    TensorMetadata,
    ValueForm,
    ValueKind,
    answer_kinds,
    input_metadata,
    kind_of,
    output_metadata,
    parameter_kinds,
)
from tests.builders.specs import method


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (np.ndarray, ValueKind(ValueForm.ARRAY)),
        (NDArray[np.float32], ValueKind(ValueForm.ARRAY, "FP32")),
        (NDArray[np.bool_], ValueKind(ValueForm.ARRAY, "BOOL")),
        (list[float] | NDArray[np.int64], ValueKind(ValueForm.ARRAY, "INT64")),
        (int, ValueKind(ValueForm.SCALAR, "INT64", (1,))),
        (float | None, ValueKind(ValueForm.SCALAR, "FP64", (1,))),
        (bool, ValueKind(ValueForm.SCALAR, "BOOL", (1,))),
        (str, ValueKind(ValueForm.SCALAR, "BYTES", (1,))),
        (bytes, ValueKind(ValueForm.SCALAR, "BYTES", (1,), is_text=False)),
        (list[list[float]], ValueKind(ValueForm.LIST, "FP64", (-1, -1))),
        (list[str], ValueKind(ValueForm.LIST, "BYTES")),
        (list[Any], ValueKind(ValueForm.LIST)),
        (Any, UNKNOWN),
        (dict[str, int], ValueKind(ValueForm.OBJECT, "")),
    ],
)
def test_a_hint_is_a_kind_of_tensor(hint: Any, kind: ValueKind) -> None:
    """As the SDK describes it."""
    found = kind_of(schema_of(hint, {}), {})
    assert found[:2] == kind[:2]
    if kind.form is not ValueForm.OBJECT:
        assert found == kind


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a"}, {"items": [], "type": "array"}, {"anyOf": []}, {"type": ["null"]}, {"enum": []},
        {"type": {"a": 1}}, {"enum": {"a": 1}},
    ],
)  # fmt: skip
def test_a_schema_may_say_anything(schema: Any) -> None:
    """Also what leads back to itself, in many ways at once."""
    loop = {
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 50 + [{"type": "array", "items": {"$ref": "#/$defs/a"}}]}}
    }
    assert isinstance(kind_of(schema, loop), ValueKind)
    assert isinstance(kind_of(schema, {"$defs": 5}), ValueKind)


def test_metadata_is_in_the_order_of_the_function() -> None:
    """What has a default is optional, and what is no tensor is not shown."""
    schema = {
        "properties": {"b": {"type": "integer"}, "a": {"type": "number"}, "c": {"type": "object"}},
        "required": ["a"],
        "x-pilotlight-order": ["a", "b", 7, "gone"],
    }
    takes = method(input_schema=schema)
    assert list(parameter_kinds(takes)) == ["a", "b", "c"]
    assert input_metadata(takes) == [
        TensorMetadata("a", "FP64", (1,), optional=False), TensorMetadata("b", "INT64", (1,), optional=True)
    ]  # fmt: skip


def test_an_object_answers_a_tensor_for_each_name() -> None:
    """Anything else is one, `output`; without a hint names show in the answer only."""
    named = {"$ref": "#/$defs/R", "$defs": {"R": {"type": "object", "properties": {"p": {"type": "number"}}}}}
    assert list(answer_kinds(method(output_schema=named))) == ["p"]
    assert list(answer_kinds(method(output_schema={"type": "integer"}))) == ["output"]
    assert answer_kinds(method()) == {}
    assert output_metadata(method()) == [TensorMetadata("output", "FP32", (-1,))]
    assert output_metadata(method(output_schema={"type": "object"})) == []
