"""The messages of `inference.GRPCInferenceService`, as far as they are used, by their numbers on the wire.

They are made here of a table, in a descriptor pool of their own: a process that has loaded a client's generated
messages of the same names, as tests do, could not load others into the common pool.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PACKAGE = "inference"
SERVICE = f"{PACKAGE}.GRPCInferenceService"
MESSAGES = {
    "ServerLiveRequest": "",
    "ServerLiveResponse": "1 live bool",
    "ServerReadyRequest": "",
    "ServerReadyResponse": "1 ready bool",
    "ModelReadyRequest": "1 name string, 2 version string",
    "ModelReadyResponse": "1 ready bool",
    "ServerMetadataRequest": "",
    "ServerMetadataResponse": "1 name string, 2 version string, 3 extensions *string",
    "ModelMetadataRequest": "1 name string, 2 version string",
    "TensorMetadata": "1 name string, 2 datatype string, 3 shape *int64",
    "ModelMetadataResponse": "1 name string, 2 versions *string, 3 platform string, 4 inputs *TensorMetadata, "
    "5 outputs *TensorMetadata",
    "InferParameter": "1 bool_param ?bool, 2 int64_param ?int64, 3 string_param ?string, 4 double_param ?double, "
    "5 uint64_param ?uint64",
    "InferTensorContents": "1 bool_contents *bool, 2 int_contents *int32, 3 int64_contents *int64, "
    "4 uint_contents *uint32, 5 uint64_contents *uint64, 6 fp32_contents *float, 7 fp64_contents *double, "
    "8 bytes_contents *bytes",
    "InferInputTensor": "1 name string, 2 datatype string, 3 shape *int64, 4 parameters %InferParameter, "
    "5 contents InferTensorContents",
    "InferRequestedOutputTensor": "1 name string, 2 parameters %InferParameter",
    "ModelInferRequest": "1 model_name string, 2 model_version string, 3 id string, 4 parameters %InferParameter, "
    "5 inputs *InferInputTensor, 6 outputs *InferRequestedOutputTensor, 7 raw_input_contents *bytes",
    "InferOutputTensor": "1 name string, 2 datatype string, 3 shape *int64, 4 parameters %InferParameter",
    "ModelInferResponse": "1 model_name string, 2 model_version string, 3 id string, 4 parameters %InferParameter, "
    "5 outputs *InferOutputTensor, 6 raw_output_contents *bytes",
    "ModelStreamInferResponse": "1 error_message string, 2 infer_response ModelInferResponse",
    "ModelConfigRequest": "1 name string, 2 version string",
    "ModelInput": "1 name string, 2 data_type int32, 4 dims *int64, 8 optional bool",
    "ModelOutput": "1 name string, 2 data_type int32, 3 dims *int64",
    "ModelTransactionPolicy": "1 decoupled bool",
    "ModelConfig": "1 name string, 2 platform string, 4 max_batch_size int32, 5 input *ModelInput, "
    "6 output *ModelOutput, 17 backend string, 19 model_transaction_policy ModelTransactionPolicy",
    "ModelConfigResponse": "1 config ModelConfig",
    "ModelStatisticsRequest": "1 name string, 2 version string",
    "StatisticDuration": "1 count uint64, 2 ns uint64",
    "InferStatistics": "1 success StatisticDuration, 2 fail StatisticDuration, 3 queue StatisticDuration, "
    "4 compute_input StatisticDuration, 5 compute_infer StatisticDuration, 6 compute_output StatisticDuration",
    "InferBatchStatistics": "1 batch_size uint64",
    "ModelStatistics": "1 name string, 2 version string, 3 last_inference uint64, 4 inference_count uint64, "
    "5 execution_count uint64, 6 inference_stats InferStatistics, 7 batch_stats *InferBatchStatistics",
    "ModelStatisticsResponse": "1 model_stats *ModelStatistics",
}
"""Number, name and type of each field; * is repeated, % a map from names, ? one of several."""
CONFIG_TYPES = {
    "TYPE_BOOL": 1, "TYPE_UINT8": 2, "TYPE_UINT16": 3, "TYPE_UINT32": 4, "TYPE_UINT64": 5, "TYPE_INT8": 6,
    "TYPE_INT16": 7, "TYPE_INT32": 8, "TYPE_INT64": 9, "TYPE_FP16": 10, "TYPE_FP32": 11, "TYPE_FP64": 12,
    "TYPE_STRING": 13, "TYPE_BF16": 14,
}  # fmt: skip
"""The enumeration of configurations."""

Field = descriptor_pb2.FieldDescriptorProto
InferMessage = Any
"""One of these messages, whose classes are made at run time."""


def message_class(name: str) -> InferMessage:
    """The class of a message."""
    return message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


def message_of(name: str, view: dict[str, Any]) -> InferMessage:
    """A message of what is shown as JSON over HTTP."""
    return json_format.ParseDict(view, message_class(name)(), descriptor_pool=_pool)


def _described() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="pilotlight_inference.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        described = file.message_type.add(name=name)
        for text in filter(None, fields.split(", ")):
            number, field_name, kind = text.split(" ")
            _add_field(described, int(number), field_name, kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_field(message: descriptor_pb2.DescriptorProto, number: int, name: str, kind: str) -> None:
    mark, kind = (kind[0], kind[1:]) if kind[0] in "*%?" else ("", kind)
    label = Field.LABEL_REPEATED if mark in ("*", "%") else Field.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if mark == "%":
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add_field(entry, 1, "key", "string")
        _add_field(entry, 2, "value", kind)
        kind = f"{message.name}.{entry.name}"
    if mark == "?":
        if not message.oneof_decl:
            message.oneof_decl.add(name="parameter_choice")
        field.oneof_index = 0
    if kind[0].isupper():
        field.type, field.type_name = Field.TYPE_MESSAGE, f".{PACKAGE}.{kind}"
    else:
        field.type = Field.Type.Value(f"TYPE_{kind.upper()}")


_pool = _described()
