"""What is done with one body, and when it is too much to be done at once."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import msgspec
import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput, BadOutput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_work import AT_ONCE, IN_WORKER, check_output, output_json, read_call
from pilotlight_gateway.bodies.call_requests import BodyFormat
from pilotlight_gateway.schemas.schema_validators import Validators
from tests.builders.specs import function_spec, method

PLAIN = method()
NUMBERS = method(
    input_schema={"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}},
    output_schema={"type": "array", "items": {"type": "integer"}},
)


def as_json(output: bytes, *, at_once: bool = True) -> Any:
    bounds = AT_ONCE if at_once else IN_WORKER
    return json.loads(output_json(output, "ver_1", PLAIN, Validators(), bounds))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\x00\xff", base64.b64encode(b"\x00\xff").decode()),
        ({"a": [math.nan, math.inf, 1.5]}, {"a": [None, None, 1.5]}),
        ({None: 1}, {"None": 1}),
        (np.arange(6, dtype="uint8").reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        (np.zeros((2, 0)), [[], []]),
        (np.float32(1.5), 1.5),
    ],
)
def test_json_has_a_form_for_all_that_python_has(value: Any, text: Any) -> None:
    """Bytes are base64, what is no number is null, keys are strings, arrays are lists."""
    assert as_json(values.encode(value)) == text


def test_an_output_that_cannot_be_read_is_the_functions_error() -> None:
    """A header that promises more than is there; half a message; nothing is null."""
    with pytest.raises(BadOutput, match="cannot be read"):
        as_json(msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"nonsense")))
    with pytest.raises(BadOutput, match="cannot be read"):
        as_json(b"\x93\x01")
    assert as_json(b"") is None


@pytest.mark.parametrize("shape", [(10_000, 1, 1, 1, 1), (1, 2_000, 1, 1, 1, 1, 1), (2_000, 0), (5, 1_000, 0, 3)])
def test_an_array_is_not_more_lists_than_its_data_warrants(shape: tuple[int, ...]) -> None:
    """Sides of 0 and 1 cost nothing in a shape, and a list each in JSON."""
    output = values.encode(np.zeros(shape, dtype="uint8"))

    for at_once in (True, False):
        with pytest.raises(BadOutput, match="lists in JSON: squeeze it"):
            as_json(output, at_once=at_once)


@pytest.mark.parametrize("shape", [(64, 1, 1, 1), (100, 1), (0, 4), (1,) * 60, (30, 0)])
def test_usual_shapes_become_json(shape: tuple[int, ...]) -> None:
    """Also those with sides of 1 or 0."""
    assert as_json(values.encode(np.zeros(shape))) == np.zeros(shape).tolist()


@pytest.mark.parametrize(
    "output",
    [
        msgspec.msgpack.encode([[]] * 9_000),
        values.encode(np.zeros(9_000, dtype="uint8")),
        values.encode([np.zeros((90, 1), dtype="uint8")] * 60),
    ],
    ids=["lists", "an array", "many arrays"],
)
def test_what_stands_for_much_is_not_done_at_once(output: bytes) -> None:
    """However few its bytes are."""
    assert len(output) < 64 * 1024

    with pytest.raises(TooManyValues):
        as_json(output)
    assert as_json(output, at_once=False)


def test_a_long_check_is_not_done_at_once() -> None:
    """Its cost is the value's, times the schema's."""
    costly = method(output_schema={"items": {"enum": list(range(500))}})
    output = msgspec.msgpack.encode([1] * 1_000)

    with pytest.raises(TooManyValues):
        check_output(output, "ver_1", costly, Validators(), AT_ONCE)
    check_output(output, "ver_1", costly, Validators(), IN_WORKER)


def test_an_output_is_checked_by_its_hints() -> None:
    """The wrong part is named; without hints nothing is decoded."""
    check_output(msgspec.msgpack.encode([1, 2]), "ver_1", NUMBERS, Validators(), AT_ONCE)
    check_output(b"\xc1", "ver_1", PLAIN, Validators(), AT_ONCE)
    with pytest.raises(BadOutput, match=r"output\.1"):
        check_output(msgspec.msgpack.encode([1, "x"]), "ver_1", NUMBERS, Validators(), AT_ONCE)


@pytest.mark.parametrize("kind", [BodyFormat.JSON, BodyFormat.MSGPACK])
def test_a_request_is_read_checked_and_packed(kind: BodyFormat) -> None:
    """Its arguments become msgpack; the rest is the request."""
    encode = msgspec.json.encode if kind is BodyFormat.JSON else msgspec.msgpack.encode
    spec = function_spec("f", NUMBERS)

    body = encode({"input": {"n": [1]}, "deadline_ms": 5.0})
    request, called, arguments = read_call(body, kind, "ver_1", spec, Validators(), AT_ONCE)

    assert msgspec.msgpack.decode(arguments) == {"n": [1]}
    assert (request.deadline_ms, request.input, called) == (5.0, {}, NUMBERS)
    with pytest.raises(BadInput, match=r"input\.n\.0"):
        read_call(encode({"input": {"n": ["x"]}}), kind, "ver_1", spec, Validators(), AT_ONCE)
    with pytest.raises(TooManyValues):
        read_call(encode({"input": {"n": [1] * 9_000}}), kind, "ver_1", spec, Validators(), AT_ONCE)
