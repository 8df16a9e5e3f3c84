"""What a request of tensors asks a function for."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import MethodSpec
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.tensors.infer_requests import InferRequest, infer_call
from pilotlight_gateway.tensors.tensor import Tensor, join_bytes
from tests.gateway.served_models import ARRAY, FLOATS, model_method

STRING, NUMBER = {"type": "string"}, {"type": "number"}


def asked(takes: MethodSpec, *tensors: Tensor, **more: Any) -> dict[str, Any]:
    """The request for the function, with its arrays as numpy's."""
    call = infer_call(InferRequest(tensors=tensors, **more), takes, None)
    found: dict[str, Any] = values.decode(call.body)
    return found


def floats(*numbers: float, name: str = "x", shape: tuple[int, ...] | None = None) -> Tensor:
    return Tensor(name, "FP32", shape or (len(numbers),), struct.pack(f"<{len(numbers)}f", *numbers))


def texts(*elements: bytes, name: str = "x") -> Tensor:
    return Tensor(name, "BYTES", (len(elements),), join_bytes(list(elements)))


def test_an_array_takes_a_tensor_as_it_is() -> None:
    """Its shape and dtype too, without a look at its elements."""
    takes = model_method(x=ARRAY)
    found = asked(takes, floats(1, 2, 3, 4, shape=(2, 2)))["input"]["x"]
    assert np.array_equal(found, np.array([[1, 2], [3, 4]], np.float32))
    assert found.dtype == np.float32
    half = Tensor("x", "BF16", (1,), b"\xc0\x3f")
    call = infer_call(InferRequest(tensors=(half,)), takes, 0)
    assert msgspec.msgpack.decode(call.body)["input"]["x"].code == values.NDARRAY


def test_lists_and_scalars_take_elements() -> None:
    """Nested by the shape; one element for a scalar, whatever its shape."""
    lists = model_method(x={"type": "array", "items": {"type": "array", "items": NUMBER}})
    assert asked(lists, floats(1, 2, 3, 4, shape=(2, 2)))["input"] == {"x": [[1, 2], [3, 4]]}
    assert asked(model_method(x=NUMBER), floats(1.5, shape=(1, 1)))["input"] == {"x": 1.5}
    assert asked(model_method(x=STRING), texts("ü".encode()))["input"] == {"x": "ü"}
    raw = STRING | {"contentEncoding": "base64"}
    assert asked(model_method(x=raw), texts(b"\xff"))["input"] == {"x": b"\xff"}
    assert asked(MethodSpec(name="", attribute="f"), texts(b"a", b"\xff"))["input"] == {"x": [b"a", b"\xff"]}


@pytest.mark.parametrize(
    ("takes", "tensor", "why"),
    [
        (FLOATS, Tensor("x", "INT64", (1,), b"\0" * 8), "takes FP32, and INT64 came"),
        (ARRAY, texts(b"a"), "BYTES came"),
        (STRING, floats(1), "takes BYTES, and FP32 came"),
        (STRING, texts(b"\xff"), "no UTF-8"),
        (STRING, texts(b"a", b"b"), "takes one element, and 2 came"),
        (NUMBER, floats(float("nan")), "finite"),
        (NUMBER, Tensor("x", "FP32", (1,), b"1"), "has 4 bytes"),
        ({"type": "object"}, floats(1), "takes an object"),
        ({"type": "array", "items": NUMBER}, floats(*range(600), shape=(600, 1, 1, 1, 1, 1)), "squeeze"),
    ],
)
def test_what_a_parameter_does_not_take_is_refused(takes: dict[str, Any], tensor: Tensor, why: str) -> None:
    """Before the function is called, by the name of the tensor."""
    with pytest.raises(BadInput, match=rf"inputs.x: .*{why}") as refused:
        asked(model_method(x=takes), tensor)
    assert refused.value.more["field"] == "inputs.x"


def test_parameters_are_arguments_or_the_protocols() -> None:
    """Priority and timeout are the call's; what the function has of a name it gets; anything else is refused."""
    takes = model_method(x=ARRAY, scale=NUMBER)
    call = infer_call(
        InferRequest(tensors=(floats(1),), parameters={"scale": 2.5, "timeout": 1500, "priority": 2}), takes, None
    )
    said = values.decode(call.body)
    assert (said["input"]["scale"], said["deadline_ms"], call.priority) == (2.5, 1.5, "standard")
    for parameters, why in (
        ({"scales": 1}, "no such parameter; it has x, scale"),
        ({"timeout": -1}, "parameters.timeout"),
        ({"timeout": True}, "parameters.timeout"),
        ({"priority": "high"}, "parameters.priority"),
        ({"sequence_id": 7}, "there are no sequences"),
        ({"x": 1}, "both inputs and parameters"),
        ({str(n): 1 for n in range(65)}, "at most 64"),
    ):
        with pytest.raises(BadInput, match=why):
            asked(takes, floats(1), parameters=parameters)
    assert asked(takes, floats(1), parameters={"sequence_id": 0, "scale": 1})["input"]["scale"] == 1


def test_a_name_stands_for_one_tensor() -> None:
    """And there are not too many, and the id is short."""
    takes = model_method(x=ARRAY)
    for tensors, more, why in (
        ((floats(1), floats(2)), {}, "two of the name"),
        (tuple(floats(1, name=str(n)) for n in range(257)), {}, "at most 256"),
        ((floats(1),), {"id": "x" * 257}, "id: "),
    ):
        with pytest.raises(BadInput, match=why):
            asked(takes, *tensors, **more)


def test_elements_count_against_the_bound_together() -> None:
    """Those that are walked over; arrays are not."""
    takes = model_method(x=NUMBER, y={"type": "array", "items": NUMBER}, z=ARRAY)
    tensors = (floats(1), floats(1, 2, name="y"), floats(*range(100), name="z"))
    infer_call(InferRequest(tensors=tensors), takes, 3)
    with pytest.raises(TooManyValues):
        infer_call(InferRequest(tensors=tensors), takes, 2)
