"""Requests and answers as HTTP bodies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.tensors.infer_bodies import infer_answer, read_infer
from pilotlight_gateway.tensors.infer_requests import InferRequest, WantedOutput
from pilotlight_gateway.tensors.tensor import Tensor
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor


def read(said: Any, binary: bytes = b"", most: int | None = None) -> InferRequest:
    text = said if isinstance(said, bytes) else json.dumps(said).encode()
    return read_infer(text + binary, len(text), most)


def one(**more: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": "INT8", "shape": [2]} | more]}


def test_tensors_are_in_the_json_or_behind_it() -> None:
    """In their order, and each as the protocol allows: flat, nested, or bytes."""
    said = {
        "id": "a",
        "inputs": [
            {"name": "b", "datatype": "INT16", "shape": [1], "parameters": {"binary_data_size": 2}},
            {"name": "x", "datatype": "INT8", "shape": [2, 1], "data": [[1], [-1]]},
            {"name": "c", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": 5}},
            {"name": "y", "datatype": "BYTES", "shape": [1], "data": ["ü"]},
        ],
        "outputs": [{"name": "p"}, {"name": "q", "parameters": {"binary_data": False}}],
        "parameters": {"binary_data_output": True},
    }
    found = read(said, b"\1\2\1\0\0\0z")
    assert found.tensors == (
        Tensor("b", "INT16", (1,), b"\1\2"), Tensor("x", "INT8", (2, 1), b"\1\xff"),
        Tensor("c", "BYTES", (1,), b"\1\0\0\0z"), Tensor("y", "BYTES", (1,), b"\2\0\0\0\xc3\xbc"),
    )  # fmt: skip
    assert (found.id, found.binary) == ("a", True)
    assert found.wanted == (WantedOutput("p", binary=True), WantedOutput("q", binary=False))


@pytest.mark.parametrize(
    ("said", "binary", "why"),
    [
        (b"{", b"", "not JSON"),
        (b"[" * 5000, b"", "protocol|deep|JSON"),
        ({"inputs": 5}, b"", "does not match the protocol"),
        ({"input": []}, b"", "does not match the protocol"),
        (one(), b"", "expected data"),
        (one(data=[1]), b"", "its shape has 2 elements, and its data 1"),
        (one(data=[1, [2]]), b"", "side by side"),
        (one(data=[1, 300]), b"", "out of the range"),
        (one(data=[1, 2], parameters={"binary_data_size": 2}), b"ab", "both data and"),
        (one(parameters={"binary_data_size": 3}), b"ab", "2 bytes are left"),
        (one(parameters={"binary_data_size": -1}), b"ab", "2 bytes are left"),
        (one(parameters={"binary_data_size": "2"}), b"ab", "2 bytes are left"),
        (one(parameters={"binary_data_size": 1}), b"ab", "1 bytes are behind"),
        (one(parameters={"shared_memory_region": "r"}), b"", "no shared memory"),
        (one(datatype="FP16", data=[1, 2]), b"", "as bytes only"),
        (one(datatype="BYTES", data=[1, 2]), b"", "are strings"),
        (one(data=[1, 2]) | {"outputs": [{"name": "o", "parameters": {"classification": 3}}]}, b"", "classification"),
        (one(data=[1, 2]) | {"outputs": [{"name": "o", "parameters": {"binary_data": 1}}]}, b"", "true or false"),
        (one(data=[1, 2]) | {"outputs": [{"name": "o", "parameters": {"shared_memory_region": 1}}]}, b"", "no shared"),
    ],
)
def test_what_is_wrong_is_named(said: Any, binary: bytes, why: str) -> None:
    """Before anything runs."""
    with pytest.raises(BadInput, match=why):
        read(said, binary)


def test_elements_in_json_are_bounded_where_they_are_read_at_once() -> None:
    """By their shapes, before they are walked over."""
    assert read(one(data=[1, 2]), most=2).tensors[0].data == b"\1\2"
    with pytest.raises(TooManyValues):
        read(one(data=[1, 2]), most=1)


def test_an_answer_is_json_and_the_bytes_behind_it() -> None:
    """Its length is told where there are any."""
    outputs = [
        WrittenTensor("a", "INT8", (2,), binary=True, data=b"\1\2"),
        WrittenTensor("b", "FP32", (1,), binary=False, data=b"[1.5]"),
        WrittenTensor("c", "BYTES", (1,), binary=False, data=b'["/w=="]', base64=True),
    ]
    pieces, length = infer_answer("m", "2", "mine", outputs)
    text = pieces[0]
    assert (length, pieces[1:]) == (len(text), [b"\1\2"])
    assert json.loads(text) == {
        "model_name": "m", "model_version": "2", "id": "mine",
        "outputs": [
            {"name": "a", "datatype": "INT8", "shape": [2], "parameters": {"binary_data_size": 2}},
            {"name": "b", "datatype": "FP32", "shape": [1], "data": [1.5]},
            {"name": "c", "datatype": "BYTES", "shape": [1], "parameters": {"content_type": "base64"},
             "data": ["/w=="]},
        ],
    }  # fmt: skip
    assert infer_answer("m", "2", "", [])[1] is None
