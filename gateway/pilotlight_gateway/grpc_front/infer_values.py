"""Requests and answers of tensors, as messages."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.grpc_front.infer_messages import InferMessage, message_class
from pilotlight_gateway.http.inference.model_lookup import FoundModel
from pilotlight_gateway.tensors.datatypes import BYTES
from pilotlight_gateway.tensors.infer_bodies import SHARED
from pilotlight_gateway.tensors.infer_requests import MOST_PARAMETERS, InferRequest, WantedOutput
from pilotlight_gateway.tensors.tensor import MOST_TENSORS, Tensor, check_shape, join_bytes, pack_numbers
from pilotlight_gateway.tensors.tensor_answers import WrittenTensor

CONTENTS = {
    "BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents", BYTES: "bytes_contents",
}  # fmt: skip
"""Where the elements of a datatype are that do not come as bytes."""
AT_ONCE = 8_192
"""More elements than this are packed in a thread."""
FINAL = "triton_final_response"


async def request_of(message: InferMessage) -> InferRequest:
    """What a ModelInferRequest asks for.

    Raises:
        BadInput: naming what is wrong.
    """
    inputs, raw = message.inputs, message.raw_input_contents
    if len(inputs) > MOST_TENSORS:
        raise BadInput(f"inputs: expected at most {MOST_TENSORS} tensors.", field="inputs")
    if raw and len(raw) != len(inputs):
        raise BadInput(
            f"raw_input_contents: there are {len(raw)} of them, and {len(inputs)} inputs: expected one for each.",
            field="raw_input_contents",
        )
    if raw:
        tensors = [_raw_tensor(one, data) for one, data in zip(inputs, raw, strict=True)]
    elif sum(_count(one) for one in inputs) <= AT_ONCE:
        tensors = [_typed_tensor(one) for one in inputs]
    else:
        tensors = await asyncio.to_thread(lambda: [_typed_tensor(one) for one in inputs])
    return InferRequest(
        id=message.id,
        tensors=tuple(tensors),
        parameters=parameters_of(message.parameters),
        wanted=tuple(_wanted(one) for one in message.outputs),
        binary=True,
    )


def parameters_of(found: Any) -> dict[str, Any]:
    """The parameters of a message. Raises BadInput: one says nothing, or there are too many."""
    if len(found) > MOST_PARAMETERS:
        raise BadInput(f"parameters: expected at most {MOST_PARAMETERS}.", field="parameters")
    values: dict[str, Any] = {}
    for name, value in found.items():
        if (choice := value.WhichOneof("parameter_choice")) is None:
            raise BadInput(f"parameters.{name[:100]}: it has no value.", field=f"parameters.{name[:100]}")
        values[name] = getattr(value, choice)
    return values


def answer_of(model: FoundModel, client_id: str, tensors: list[WrittenTensor]) -> InferMessage:
    """A ModelInferResponse."""
    answer = message_class("ModelInferResponse")(model_name=model.name, model_version=model.number, id=client_id)
    for one in tensors:
        answer.outputs.add(name=one.name, datatype=one.datatype, shape=one.shape)
        answer.raw_output_contents.append(one.data)
    return answer


def final_answer(model: FoundModel, client_id: str) -> InferMessage:
    """What says that a request of a stream has no more answers."""
    return mark_final(answer_of(model, client_id, []), is_final=True)


def mark_final(answer: InferMessage, *, is_final: bool) -> InferMessage:
    """The answer, which says whether it is the last one of its request."""
    answer.parameters[FINAL].bool_param = is_final
    return answer


def _raw_tensor(one: InferMessage, data: bytes) -> Tensor:
    _refuse_shared(one, "inputs")
    if one.HasField("contents"):
        raise BadInput(f"inputs.{one.name[:100]}: its elements come in contents, and as bytes too.", field="inputs")
    return Tensor(one.name, one.datatype, tuple(one.shape), data)


def _typed_tensor(one: InferMessage) -> Tensor:
    _refuse_shared(one, "inputs")
    name, datatype, shape = one.name, one.datatype, tuple(one.shape)
    check_shape(name, datatype, shape)
    if datatype not in CONTENTS:
        raise BadInput(
            f"inputs.{name[:100]}: {datatype} comes as bytes only: send raw_input_contents.",
            field=f"inputs.{name[:100]}",
        )
    elements = list(getattr(one.contents, CONTENTS[datatype]))
    if len(elements) != math.prod(shape):
        where = CONTENTS[datatype]
        raise BadInput(
            f"inputs.{name[:100]}: its shape has {math.prod(shape)} elements, and {where} {len(elements)}.",
            field=f"inputs.{name[:100]}",
        )
    data = join_bytes(elements) if datatype == BYTES else pack_numbers(name, datatype, elements)
    return Tensor(name, datatype, shape, data)


def _count(one: InferMessage) -> int:
    return len(getattr(one.contents, CONTENTS[one.datatype])) if one.datatype in CONTENTS else 0


def _wanted(one: InferMessage) -> WantedOutput:
    _refuse_shared(one, "outputs")
    if "classification" in one.parameters:
        raise BadInput(
            f"outputs.{one.name[:100]}: classification is not offered: have the function return classes.",
            field=f"outputs.{one.name[:100]}",
        )
    return WantedOutput(one.name, binary=True)


def _refuse_shared(one: InferMessage, part: str) -> None:
    if SHARED in one.parameters:
        field = f"{part}.{one.name[:100]}"
        raise BadInput(f"{field}: there is no shared memory with clients: send the tensor itself.", field=field)
