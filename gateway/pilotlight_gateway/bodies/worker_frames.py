"""The messages between a gateway and a worker: a length, a msgpack head, and as many raw bytes as the head says."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

import msgspec

from pilotlight_core.model.api.call_api import CallRequest
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_gateway.bodies.model_readers import ModelRoute
from pilotlight_gateway.bodies.model_request import ModelRequestHead
from pilotlight_gateway.tensors.infer_requests import WantedOutput

LENGTH = struct.Struct("<I")
MOST_HEAD = 16 * 2**20
"""Bytes; a head holds one function's spec at most."""


class ReadCallWork(msgspec.Struct, frozen=True, kw_only=True, tag="read_call"):
    """Read the request in the payload. The reply's payload: its arguments as msgpack."""

    size: int
    kind: bytes
    version: str
    spec: FunctionSpec


class OutputWork(msgspec.Struct, frozen=True, kw_only=True, tag="output"):
    """Check the output in the payload, and make JSON of it. The reply's payload: that text, empty unless `as_json`."""

    size: int
    version: str
    method: MethodSpec | None
    as_json: bool


class ReadDeployWork(msgspec.Struct, frozen=True, kw_only=True, tag="read_deploy"):
    """Read and check the request to deploy `app` in the payload. The reply's payload: the request as JSON."""

    size: int
    app: str


class ReadModelWork(msgspec.Struct, frozen=True, kw_only=True, tag="read_model"):
    """Read the request to a model in the payload. The reply's payload: the values of its fields."""

    size: int
    route: ModelRoute


class EmbeddingsWork(msgspec.Struct, frozen=True, kw_only=True, tag="embeddings"):
    """Make the answer of OpenAI's route of the embeddings in the payload. The reply's payload: that text."""

    size: int
    model: str
    count: int
    """Inputs, each of which has a vector."""
    as_base64: bool
    prompt_tokens: int | None = None
    """What the call counted."""


class ReadInferWork(msgspec.Struct, frozen=True, kw_only=True, tag="read_infer"):
    """Read the request for tensors in the payload. The reply's payload: the `InferCall` as msgpack."""

    size: int
    json_bytes: int
    """Of the payload; 0: it is an `InferRequest` as msgpack."""
    method: MethodSpec


class TensorsWork(msgspec.Struct, frozen=True, kw_only=True, tag="tensors"):
    """Check the output in the payload, and make tensors of it. The reply's payload: `WrittenTensor`s as msgpack."""

    size: int
    version: str
    method: MethodSpec
    wanted: tuple[WantedOutput, ...]
    binary: bool


Work = ReadCallWork | ReadDeployWork | OutputWork | EmbeddingsWork | ReadModelWork | ReadInferWork | TensorsWork


class WorkReply(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a `Work`. With a `code` it is refused."""

    size: int = 0
    request: CallRequest | None = None
    method: str = ""
    asked: ModelRequestHead | None = None
    code: str = ""
    detail: str = ""
    more: dict[str, Any] = {}
    last: bool = False
    """Whether the worker ends now."""


_encode = msgspec.msgpack.Encoder().encode
work_decoder = msgspec.msgpack.Decoder(Work)
reply_decoder = msgspec.msgpack.Decoder(WorkReply)


def head_of(message: Work | WorkReply) -> bytes:
    """The length and the head; `size` bytes of payload follow."""
    head = _encode(message)
    return LENGTH.pack(len(head)) + head


def read_work(source: BinaryIO) -> tuple[Work, bytes] | None:
    """The next work and its payload; None at the end, which may come anywhere when the gateway is killed."""
    length = source.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(length)
    if len(head := source.read(size)) < size:
        return None
    work = work_decoder.decode(head)
    payload = source.read(work.size)
    return (work, payload) if len(payload) == work.size else None
