"""The worker process."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import numpy as np
import pytest

from pilotlight_core.model import values
from pilotlight_gateway.bodies import body_worker
from pilotlight_gateway.bodies.body_worker import perform, serve
from pilotlight_gateway.bodies.worker_frames import LENGTH, OutputWork, ReadCallWork, WorkReply, head_of, reply_decoder
from pilotlight_gateway.schemas.schema_validators import Validators
from tests.builders.specs import function_spec, method

NUMBERS = method(
    input_schema={"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}},
    output_schema={"type": "array", "items": {"type": "integer"}},
)


def read_call(body: bytes) -> tuple[WorkReply, bytes]:
    spec = function_spec("f", NUMBERS)
    work = ReadCallWork(size=len(body), kind=b"application/json", version="ver_1", spec=spec)
    return perform(work, body, Validators())


def output(value: Any, *, as_json: bool = True) -> tuple[WorkReply, bytes]:
    data = values.encode(value)
    return perform(OutputWork(size=len(data), version="ver_1", method=NUMBERS, as_json=as_json), data, Validators())


def test_what_is_done_comes_back_with_its_size() -> None:
    """The arguments of a request, the JSON of an output, nothing of a mere check."""
    reply, payload = read_call(b'{"input":{"n":[1]},"deadline_ms":5}')
    assert (reply.size, reply.method, msgspec.msgpack.decode(payload)) == (len(payload), NUMBERS.name, {"n": [1]})
    assert reply.request is not None
    assert reply.request.deadline_ms == 5.0
    assert output([1, 2]) == (WorkReply(size=5), b"[1,2]")
    assert output([1, 2], as_json=False) == (WorkReply(), b"")


def test_a_refusal_comes_back_as_its_code_and_detail() -> None:
    """With the field that it names."""
    reply, payload = read_call(b'{"input":{"n":["x"]}}')
    assert (reply.code, reply.more["field"], payload) == ("bad_input", "input.n.0", b"")
    assert output(["x"])[0].code == "bad_output"
    assert output(["x"], as_json=False)[0].code == "bad_output"


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an array; and where memory does not suffice, which side sent them is said."""
    thin = values.encode(np.zeros((6_000_000, 1, 1), dtype="uint8"))
    work = OutputWork(size=len(thin), version="ver_1", method=None, as_json=True)
    assert perform(work, thin, Validators())[0] == WorkReply(code="bad_output", detail=body_worker.TOO_MANY_RETURNED)

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(body_worker, "read_call", full)
    assert read_call(b"{}")[0] == WorkReply(code="bad_input", detail=body_worker.TOO_MANY_SENT)


def test_it_serves_until_its_input_ends_or_it_has_become_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last reply says so."""
    work = OutputWork(size=1, version="ver_1", method=None, as_json=True)
    sent = (head_of(work) + b"\x07") * 3

    monkeypatch.setattr(body_worker, "RESTART_BYTES", 2**40)
    sink = io.BytesIO()
    serve(io.BytesIO(sent), sink)
    assert sink.getvalue().count(b"7") == 3

    monkeypatch.setattr(body_worker, "RESTART_BYTES", 0)
    sink = io.BytesIO()
    serve(io.BytesIO(sent), sink)
    head = sink.getvalue()[LENGTH.size : -1]
    assert reply_decoder.decode(head).last
