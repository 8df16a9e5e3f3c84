"""JSON Schema (2020-12) of type hints, for values as the gateway's validator sees them.

It sees bytes as a string, and an array as an empty list (`values.for_schema`). A hint without a JSON type accepts
anything.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from typing import Any

import msgspec

from pilotlight.definitions.schemas.time_formats import add_time_formats
from pilotlight_core.model.values import FORMATS

Schema = dict[str, Any]

ARRAY: Schema = {"type": ["array", "number", "boolean"], "x-pilotlight": "ndarray"}
"""A numpy array or torch tensor: nested lists in JSON, or a number without dimensions."""
ARRAYS = {("numpy", "ndarray"), ("torch", "Tensor"), ("torch", "FloatTensor"), ("torch", "LongTensor")}
DTYPE = "x-pilotlight-dtype"
"""Key of the schema of an array whose hint says its dtype: clients of other protocols are told of it."""
TENSOR_DTYPES = {"FloatTensor": "float32", "LongTensor": "int64"}
NUMPY_SCALARS = {"bool": "boolean", "bool_": "boolean", "str_": "string"}
SEQUENCES = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
)
STREAMS = (
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Iterable,
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
)
TEMPLATE = "#/$defs/{name}"


def schema_of(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a type; named types go into `definitions`."""
    if isinstance(hint, str):  # it could not be evaluated where it stands, so go by its name
        return dict(ARRAY) if hint.partition("[")[0].rpartition(".")[2] in {"ndarray", "NDArray", "Tensor"} else {}
    if dtype := _dtype_of(hint):  # msgspec hides it from the hook
        return dict(ARRAY) | {DTYPE: dtype}
    try:
        (schema,), found = msgspec.json.schema_components([hint], schema_hook=_custom, ref_template=TEMPLATE)
        add_time_formats(hint, schema, found)
    except Exception:  # noqa: BLE001 - a tenant's own type may fail in any way; it then accepts anything
        return _by_parts(hint, definitions)
    definitions |= {name: _loosened(definition) for name, definition in found.items()}
    return typing.cast("Schema", _loosened(schema))


def item_of(hint: Any) -> tuple[bool, Any]:
    """Return whether a type is a list, and the type of its items."""
    origin = typing.get_origin(hint) or hint
    if origin is typing.Annotated:
        return item_of(typing.get_args(hint)[0])
    if origin in (Any, object) or isinstance(hint, str):
        return True, Any
    return origin in SEQUENCES, (typing.get_args(hint) or (Any,))[0]


def chunk_of(hint: Any) -> Any:
    """Return the type of a chunk of a generator annotated to return `hint`."""
    if (typing.get_origin(hint) or hint) in STREAMS:
        return (typing.get_args(hint) or (Any,))[0]
    return Any


def _custom(kind: Any) -> Schema:
    origin = typing.get_origin(kind) or kind
    module, name = getattr(origin, "__module__", "").partition(".")[0], getattr(origin, "__name__", "")
    if (module, name) in ARRAYS:
        return dict(ARRAY) | ({DTYPE: TENSOR_DTYPES[name]} if name in TENSOR_DTYPES else {})
    if module == "numpy":
        number = "integer" if "int" in name else "number" if "float" in name else None
        scalar = NUMPY_SCALARS.get(name, number)
        return {"type": scalar} if scalar else {}
    return {}


def _dtype_of(kind: Any) -> str:
    """float32 of `NDArray[np.float32]`, which is `ndarray[Any, dtype[float32]]`; "" of anything else."""
    if getattr(typing.get_origin(kind), "__name__", "") != "ndarray":
        return ""
    for argument in typing.get_args(kind)[1:]:
        for scalar in typing.get_args(argument):
            name = getattr(scalar, "__name__", "")
            return name if name in FORMATS else ""
    return ""


def _by_parts(hint: Any, definitions: dict[str, Schema]) -> Schema:
    """Describe part by part what msgspec cannot describe, such as `ndarray | list[float]`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return schema_of(arguments[0], definitions)
    if origin in (typing.Union, types.UnionType):
        arms = [schema_of(arm, definitions) for arm in arguments]
        return {"anyOf": arms} if all(arms) else {}
    if origin in SEQUENCES and arguments:
        return {"type": "array", "items": schema_of(arguments[0], definitions)}
    if origin in (dict, collections.abc.Mapping) and len(arguments) == 2:
        return {"type": "object", "additionalProperties": schema_of(arguments[1], definitions)}
    return {}


def _loosened(schema: Any) -> Any:
    """Drop bounds that the placeholder for bytes could not keep."""
    if isinstance(schema, list):
        return [_loosened(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    bounds = {"minLength", "maxLength"} if schema.get("contentEncoding") == "base64" else set()
    return {key: _loosened(part) for key, part in schema.items() if key not in bounds}
