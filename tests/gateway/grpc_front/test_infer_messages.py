"""The messages are those of the stock client, on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_gateway.grpc_front.infer_messages import CONFIG_TYPES, MESSAGES, message_class, message_of

NESTED = {"TensorMetadata": "ModelMetadataResponse", "InferInputTensor": "ModelInferRequest",
          "InferRequestedOutputTensor": "ModelInferRequest", "InferOutputTensor": "ModelInferResponse"}  # fmt: skip
ENUMERATION, INT32 = 14, 5


def theirs(name: str) -> Any:
    """The client's descriptor of a message."""
    from tritonclient.grpc import model_config_pb2, service_pb2

    if name in NESTED:
        return theirs(NESTED[name]).nested_types_by_name[name]
    for module in (service_pb2, model_config_pb2):
        if (found := module.DESCRIPTOR.message_types_by_name.get(name)) is not None:
            return found
    raise LookupError(name)


@pytest.mark.parametrize("name", MESSAGES)
def test_each_field_has_the_number_and_type_of_the_stock_clients(name: str) -> None:
    """By its name; what we leave out nobody needs."""
    expected = theirs(name).fields_by_name
    for field in message_class(name).DESCRIPTOR.fields:
        its = expected[field.name]
        kind = INT32 if its.type == ENUMERATION else its.type
        assert (field.number, field.type, field.is_repeated) == (its.number, kind, its.is_repeated)
        assert (field.containing_oneof is None) is (its.containing_oneof is None)
        assert (field.message_type is None) is (its.message_type is None)


def test_the_enumeration_of_datatypes_is_theirs() -> None:
    """By number."""
    from tritonclient.grpc import model_config_pb2

    their_values = model_config_pb2.DataType.items()
    assert dict(their_values) == CONFIG_TYPES | {"TYPE_INVALID": 0}


def test_what_is_written_here_is_read_there() -> None:
    """A request with parameters, both ways."""
    from tritonclient.grpc import service_pb2

    ours = message_class("ModelInferRequest")(model_name="m", raw_input_contents=[b"\1\2"])
    ours.parameters["timeout"].int64_param = 5
    ours.inputs.add(name="x", datatype="INT8", shape=[2])
    read = service_pb2.ModelInferRequest.FromString(ours.SerializeToString())
    assert (read.parameters["timeout"].int64_param, read.inputs[0].shape[0]) == (5, 2)
    assert message_class("ModelInferRequest").FromString(read.SerializeToString()) == ours


def test_a_message_is_made_of_what_http_shows() -> None:
    """By the names of its fields."""
    assert message_of("ServerMetadataResponse", {"name": "p", "extensions": ["a"]}).extensions == ["a"]
