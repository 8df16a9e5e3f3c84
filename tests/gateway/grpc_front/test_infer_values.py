"""Requests and answers as messages."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.grpc_front.infer_messages import message_class
from pilotlight_gateway.grpc_front.infer_values import answer_of, final_answer, mark_final, request_of
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.tensors.infer_requests import WantedOutput
from pilotlight_gateway.tensors.tensor import Tensor, join_bytes
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor
from tests.builders.specs import method, version_record


def request(*inputs: dict[str, Any], raw: tuple[bytes, ...] = (), **more: Any) -> Any:
    """A message with these tensors."""
    made = message_class("ModelInferRequest")(raw_input_contents=list(raw), **more)
    for one in inputs:
        contents, parameters = one.pop("contents", {}), one.pop("parameters", {})
        added = made.inputs.add(**({"name": "x", "datatype": "INT8", "shape": [2]} | one))
        for name, values in contents.items():
            getattr(added.contents, name).extend(values)
        for name, value in parameters.items():
            added.parameters[name].string_param = value
    return made


@pytest.mark.parametrize(
    ("datatype", "field", "elements", "data"),
    [
        ("INT8", "int_contents", [1, -1], b"\1\xff"),
        ("UINT16", "uint_contents", [1, 2], struct.pack("<2H", 1, 2)),
        ("INT64", "int64_contents", [1, 2], struct.pack("<2q", 1, 2)),
        ("UINT64", "uint64_contents", [1, 2], struct.pack("<2Q", 1, 2)),
        ("BOOL", "bool_contents", [True, False], b"\1\0"),
        ("FP32", "fp32_contents", [1.5, 2.5], struct.pack("<2f", 1.5, 2.5)),
        ("FP64", "fp64_contents", [1.5, 2.5], struct.pack("<2d", 1.5, 2.5)),
        ("BYTES", "bytes_contents", [b"a", b""], join_bytes([b"a", b""])),
    ],
)
async def test_elements_come_typed(datatype: str, field: str, elements: list[Any], data: bytes) -> None:
    """Each datatype in its field."""
    found = await request_of(request({"datatype": datatype, "contents": {field: elements}}))
    assert found.tensors == (Tensor("x", datatype, (2,), data),)


async def test_elements_come_as_bytes() -> None:
    """And parameters of each type; outputs always go as bytes."""
    made = request({}, {"name": "y"}, raw=(b"ab", b"cd"), id="mine")
    made.parameters["a"].bool_param, made.parameters["b"].double_param = True, 1.5
    made.parameters["c"].uint64_param, made.parameters["d"].string_param = 7, "t"
    made.outputs.add(name="o")
    found = await request_of(made)
    assert [tensor.data for tensor in found.tensors] == [b"ab", b"cd"]
    assert (found.id, found.parameters) == ("mine", {"a": True, "b": 1.5, "c": 7, "d": "t"})
    assert (found.wanted, found.binary) == ((WantedOutput("o", binary=True),), True)


async def test_many_typed_elements_are_packed_elsewhere() -> None:
    """In a thread, with the same result."""
    numbers = list(range(10_000))
    found = await request_of(request({"datatype": "INT64", "shape": [10_000], "contents": {"int64_contents": numbers}}))
    assert found.tensors[0].data == struct.pack("<10000q", *numbers)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (request({}, {"name": "y"}, raw=(b"ab",)), "1 of them, and 2 inputs"),
        (request({"contents": {"int_contents": [1]}}), "its shape has 2 elements, and int_contents 1"),
        (request({"contents": {"int_contents": [1, 300]}}), "out of the range"),
        (request({"contents": {"fp32_contents": [1, 2]}}), "int_contents 0"),
        (request({"contents": {"int_contents": [1, 2]}}, raw=(b"ab",)), "and as bytes too"),
        (request({"datatype": "FP16"}), "as bytes only"),
        (request({"datatype": "NONE"}), "is not known"),
        (request({"parameters": {"shared_memory_region": "r"}}, raw=(b"ab",)), "no shared memory"),
        (request(*({"name": str(n)} for n in range(257))), "at most 256"),
    ],
)
async def test_what_is_wrong_is_named(made: Any, why: str) -> None:
    """By the tensor."""
    with pytest.raises(BadInput, match=why):
        await request_of(made)


async def test_outputs_and_parameters_are_checked_too() -> None:
    """Classes and shared memory are not offered; a parameter has a value."""
    for name, why in (("classification", "not offered"), ("shared_memory_region", "no shared memory")):
        made = request({"contents": {"int_contents": [1, 2]}})
        made.outputs.add(name="o").parameters[name].string_param = "r"
        with pytest.raises(BadInput, match=why):
            await request_of(made)
    made = request({"contents": {"int_contents": [1, 2]}})
    made.parameters["a"].SetInParent()
    with pytest.raises(BadInput, match="no value"):
        await request_of(made)


def test_an_answer_is_bytes() -> None:
    """With what says whether it is the last one."""
    model = FoundModel("shop.f", version_record(), method())
    answer = answer_of(model, "mine", [WrittenTensor("a", "INT8", (2,), binary=True, data=b"ab")])
    assert (answer.model_name, answer.model_version, answer.id) == ("shop.f", "1", "mine")
    assert (answer.outputs[0].datatype, list(answer.outputs[0].shape)) == ("INT8", [2])
    assert list(answer.raw_output_contents) == [b"ab"]
    assert mark_final(answer, is_final=False).parameters["triton_final_response"].bool_param is False
    assert final_answer(model, "mine").parameters["triton_final_response"].bool_param is True
