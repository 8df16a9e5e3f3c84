"""The tensors that answers become."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.tensors.infer_requests import WantedOutput
from pilotlight_gateway.tensors.tensor_answers import check_wanted, tensors_of, written_tensors
from tests.gateway.served_models import FLOATS, model_method

ANY = model_method()


def tensors(value: Any, **hint: Any) -> list[tuple[str, str, tuple[int, ...], Any]]:
    """Name, datatype, shape and elements of what an answer becomes."""
    opaque = values.decode_opaque(values.encode(value))
    found = tensors_of(opaque, model_method(**hint), None)
    return [(one.name, one.datatype, one.shape, one.data) for one in found]


@pytest.mark.parametrize(
    ("value", "name", "datatype", "shape"),
    [
        (np.zeros((2, 3), np.float32), "output", "FP32", (2, 3)),
        (np.float64(1.5), "output", "FP64", (1,)),
        ([[1, 2], [3, 4]], "output", "INT64", (2, 2)),
        ([1, 2.5], "output", "FP64", (2,)),
        (2**63, "output", "UINT64", (1,)),
        (True, "output", "BOOL", (1,)),
        ("text", "output", "BYTES", (1,)),
        ([b"a", "b"], "output", "BYTES", (2,)),
        ([], "output", "FP64", (0,)),
        ({"p": np.zeros(1, np.int8)}, "p", "INT8", (1,)),
        ([np.zeros(1, np.int8)], "output_0", "INT8", (1,)),
        ({"p": 1, "q": None}, "p", "INT64", (1,)),
    ],
)
def test_whatever_has_the_form_of_tensors_is_some(value: Any, name: str, datatype: str, shape: tuple[int, ...]) -> None:
    """By the values alone, where no hint says more."""
    ((found_name, found_type, found_shape, _),) = tensors(value)
    assert (found_name, found_type, found_shape) == (name, datatype, shape)


def test_a_hint_decides_where_values_could_be_either() -> None:
    """Whole numbers of a function that promises floats are floats, and so is nothing."""
    assert tensors([1, 2], output={"type": "array", "items": {"type": "number"}})[0][1] == "FP64"
    assert tensors([], output={"type": "array", "items": {"type": "string"}})[0][1] == "BYTES"


@pytest.mark.parametrize(
    "value",
    [[[1], [1, 2]], [1, [2]], [1, "a"], [{"a": 1}], {"p": {"q": 1}}, 2**70, [None], {"": 1}, {5: 1}, [2**63, -1],
     dict.fromkeys(map(str, range(300)), 1), values.pack_array(1, "float32", (3,), b"1")],
)  # fmt: skip
def test_what_has_no_form_is_the_functions_mistake(value: Any) -> None:
    """And the error says what there is instead."""
    opaque = value if not isinstance(value, list | dict) else values.decode_opaque(values.encode(value))
    with pytest.raises(BadOutput):
        tensors_of(opaque, ANY, None)


def test_outputs_go_as_they_are_wanted() -> None:
    """Bytes or JSON; half-precision in JSON is wider; only what is named goes."""
    value = values.decode_opaque(values.encode({"a": np.array([1.5], np.float16), "b": np.array([1], np.int8)}))
    both = written_tensors(value, ANY, (), None, binary=True)
    assert [(one.name, one.datatype, one.binary) for one in both] == [("a", "FP16", True), ("b", "INT8", True)]
    (text,) = written_tensors(value, ANY, (WantedOutput("a", binary=False),), None, binary=True)
    assert (text.datatype, text.binary, text.data) == ("FP32", False, b"[1.5]")
    with pytest.raises(BadInput, match="no 'c'; there are: a, b"):
        written_tensors(value, ANY, (WantedOutput("c", binary=True),), None, binary=True)


def test_only_what_is_walked_over_counts() -> None:
    """An array that goes as bytes is not; one that goes as JSON is."""
    value = values.decode_opaque(values.encode(np.zeros(100, np.int8)))
    assert written_tensors(value, ANY, (), 1, binary=True)
    with pytest.raises(TooManyValues):
        written_tensors(value, ANY, (), 99, binary=False)
    with pytest.raises(TooManyValues):
        written_tensors([1, 2, 3], ANY, (), 2, binary=True)


def test_an_output_that_cannot_be_is_refused_before_the_call() -> None:
    """Where the schema says what there is; of several arrays it does not say how many."""
    floats = model_method(output=FLOATS)
    check_wanted((WantedOutput("output", binary=True), WantedOutput("output_1", binary=True)), floats)
    check_wanted((WantedOutput("anything", binary=True),), ANY)
    with pytest.raises(BadInput, match="no 'y'; there are: output"):
        check_wanted((WantedOutput("y", binary=True),), floats)
