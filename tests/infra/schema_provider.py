"""A provider for Terraform that knows what AWS's takes (`aws_schema.json`) and asks nobody: `python -m … SOCKET`.

With it Terraform validates a configuration, plans it, and carries it out upon nothing: names, types, references and
expressions are Terraform's own to judge. What only AWS knows is unknown in the plan, and made up afterwards.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import msgpack
from tf.gen import grpc_controller_pb2, grpc_controller_pb2_grpc, grpc_stdio_pb2_grpc, tfplugin_pb2_grpc
from tf.gen import tfplugin_pb2 as pb

SCHEMA = json.loads((Path(__file__).parent / "aws_schema.json").read_text())
TYPES: dict[str, Any] = {
    "text": "string", "number": "number", "bool": "bool", "list": ["list", "string"], "map": ["map", "string"],
}  # fmt: skip
UNKNOWN = msgpack.ExtType(0, b"\0")
#: What data sources say; what is not here is null.
DATA: dict[str, dict[str, Any]] = {
    "aws_caller_identity": {"account_id": "123456789012"},
    "aws_partition": {"partition": "aws"},
    "aws_availability_zones": {"names": ["eu-central-1a", "eu-central-1b", "eu-central-1c"]},
}
#: What is more than a text of that AWS makes up, by attribute.
MADE_UP: dict[str, Any] = {
    "identity": [{"oidc": [{"issuer": "https://oidc.example.com/id/1"}]}],
    "master_user_secret": [{"secret_arn": "arn:aws:secretsmanager:eu-central-1:123456789012:secret:1"}],
}
PROVIDER = {
    "arguments": {"region": "text", "default_tags": {"arguments": {"tags": "map"}, "required": [], "many": False}},
    "required": [],
}
Block = Mapping[str, Any]


def schema_of(block: Block) -> pb.Schema:
    return pb.Schema(version=0, block=_block(block))


def _block(block: Block) -> pb.Schema.Block:
    """Whatever is not required may be left to AWS; what can only be read, and is of no known kind, is anything."""
    made = pb.Schema.Block()
    for name, kind in block["arguments"].items():
        needed = name in block["required"]
        if isinstance(kind, str):
            made.attributes.append(
                pb.Schema.Attribute(
                    name=name,
                    type=json.dumps(TYPES[kind]).encode(),
                    required=needed,
                    optional=not needed,
                    computed=not needed,
                )
            )
        else:
            made.block_types.append(
                pb.Schema.NestedBlock(
                    type_name=name,
                    block=_block(kind),
                    nesting=pb.Schema.NestedBlock.LIST,
                    min_items=int(needed),
                    max_items=0 if kind["many"] else 1,
                )
            )
    for name, kind in block.get("attributes", {}).items():
        said = "dynamic" if kind == "list" and not name.endswith("names") else TYPES[kind]
        made.attributes.append(pb.Schema.Attribute(name=name, type=json.dumps(said).encode(), computed=True))
    return made


def planned(block: Block, value: dict[str, Any]) -> dict[str, Any]:
    """With what is not said as unknown, where AWS would say it."""
    made = dict(value)
    for name, said in value.items():
        kind = block["arguments"].get(name)
        if isinstance(kind, dict):
            made[name] = [planned(kind, each) for each in said or ()] if isinstance(said, list) else said
        elif said is None and name not in block["required"]:
            made[name] = UNKNOWN
    return made


def carried_out(block: Block, value: dict[str, Any], own: str) -> dict[str, Any]:
    """With something in place of what was unknown; texts of one object have `own` in them."""
    made = dict(value)
    for name, said in value.items():
        kind = block["arguments"].get(name) or block.get("attributes", {}).get(name)
        if isinstance(kind, dict):
            made[name] = [carried_out(kind, each, own) for each in said]
        elif isinstance(said, msgpack.ExtType):
            made[name] = _made_up(name, str(kind), own)
    return made


def _made_up(name: str, kind: str, own: str) -> Any:
    if name in MADE_UP:
        return [json.dumps(_type_of(MADE_UP[name])).encode(), MADE_UP[name]]
    if kind == "text":
        return f"{own}-{name}"
    return 1 if kind == "number" else False if kind == "bool" else None


def _type_of(value: Any) -> Any:
    """As Terraform writes types down."""
    if isinstance(value, list):
        return ["tuple", [_type_of(each) for each in value]]
    return ["object", {name: _type_of(each) for name, each in value.items()}] if isinstance(value, dict) else "string"


class SchemaProvider(tfplugin_pb2_grpc.ProviderServicer):  # type: ignore[misc]  # generated, without types
    """What Terraform asks of a provider until all is made."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def GetProviderSchema(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name, as all below
        return pb.GetProviderSchema.Response(
            provider=schema_of(PROVIDER),
            resource_schemas={name: schema_of(block) for name, block in SCHEMA["resource"].items()},
            data_source_schemas={name: schema_of(block) for name, block in SCHEMA["data"].items()},
        )

    def ValidateProviderConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ValidateDataResourceConfig.Response()

    def ConfigureProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.ConfigureProvider.Response()

    def PlanResourceChange(self, request: Any, context: Any) -> Any:  # noqa: N802
        value = msgpack.unpackb(request.proposed_new_state.msgpack, strict_map_key=False)
        made = planned(SCHEMA["resource"][request.type_name], value)
        return pb.PlanResourceChange.Response(planned_state=pb.DynamicValue(msgpack=msgpack.packb(made)))

    def ApplyResourceChange(self, request: Any, context: Any) -> Any:  # noqa: N802
        value = msgpack.unpackb(request.planned_state.msgpack, strict_map_key=False)
        own = f"{request.type_name}-{next(self._numbers)}"
        made = carried_out(SCHEMA["resource"][request.type_name], value, own)
        return pb.ApplyResourceChange.Response(new_state=pb.DynamicValue(msgpack=msgpack.packb(made)))

    def ReadDataSource(self, request: Any, context: Any) -> Any:  # noqa: N802
        value = msgpack.unpackb(request.config.msgpack, strict_map_key=False)
        if request.type_name == "aws_iam_policy_document":
            value["json"] = json.dumps({"statement": value["statement"]})
        value |= DATA.get(request.type_name, {})
        return pb.ReadDataSource.Response(state=pb.DynamicValue(msgpack=msgpack.packb(value)))

    def StopProvider(self, request: Any, context: Any) -> Any:  # noqa: N802
        return pb.StopProvider.Response()


class _Controller(grpc_controller_pb2_grpc.GRPCControllerServicer):  # type: ignore[misc]  # generated, without types
    def Shutdown(self, request: Any, context: Any) -> Any:  # noqa: N802
        return grpc_controller_pb2.Empty()


class _Stdio(grpc_stdio_pb2_grpc.GRPCStdioServicer):  # type: ignore[misc]  # generated, without types
    def StreamStdio(self, request: Any, context: Any) -> Any:  # noqa: N802
        return iter(())


def main() -> None:
    """Serve until killed."""
    server = grpc.server(ThreadPoolExecutor(8))
    tfplugin_pb2_grpc.add_ProviderServicer_to_server(SchemaProvider(), server)
    grpc_controller_pb2_grpc.add_GRPCControllerServicer_to_server(_Controller(), server)
    grpc_stdio_pb2_grpc.add_GRPCStdioServicer_to_server(_Stdio(), server)
    server.add_insecure_port(f"unix://{sys.argv[1]}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main()
