"""What a function's schema says its parameters and answers are, as tensors: what a model's metadata shows."""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from pilotlight_core.model.schema_examples import ARRAY_KEY, ORDER
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.tensors.datatypes import BYTES, DATATYPES

DTYPE_KEY = "x-pilotlight-dtype"
OUTPUT = "output"
"""The name of an answer that is one tensor."""
ANY_NUMBERS = "FP32"
"""What is shown of an array whose dtype no hint says."""
MOST_PARTS = 256
"""Of a schema that are read for one kind: references may lead back to where they stand."""
SCALARS = {"integer": "INT64", "number": "FP64", "boolean": "BOOL"}

SchemaPart = dict[str, Any]


class ValueForm(Enum):
    ARRAY = "array"  # a numpy array or torch tensor
    LIST = "list"  # lists of scalars, or of lists of them
    SCALAR = "scalar"
    ANY = "any"  # no hint says
    OBJECT = "object"  # named parts, or what is no tensor at all


class ValueKind(NamedTuple):
    """One parameter, or answer."""

    form: ValueForm
    datatype: str = ""
    """Of its elements; "": no hint says."""
    shape: tuple[int, ...] = (-1,)
    is_text: bool = True
    """Whether BYTES are strings."""

    @property
    def shown_datatype(self) -> str:
        return self.datatype or ANY_NUMBERS


UNKNOWN = ValueKind(ValueForm.ANY)


class TensorMetadata(NamedTuple):
    """A tensor, as a model's metadata has it."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


def parameter_kinds(method: MethodSpec) -> dict[str, ValueKind]:
    """The parameters that the input schema names, in the order of the function's."""
    schema = method.input_schema
    found, order = _dict_of(schema.get("properties")), schema.get(ORDER)
    first = [name for name in order if isinstance(name, str) and name in found] if isinstance(order, list) else []
    return {name: kind_of(found[name], schema) for name in dict.fromkeys([*first, *found])}


def answer_kinds(method: MethodSpec) -> dict[str, ValueKind]:
    """The outputs that the output schema names; empty: what they are called shows in an answer only."""
    schema = method.output_schema
    kind = kind_of(schema, schema)
    if kind.form is ValueForm.ANY:
        return {}
    if kind.form is not ValueForm.OBJECT:
        return {OUTPUT: kind}
    whole = _KindReader(schema).resolved(schema)
    return {name: kind_of(part, schema) for name, part in _dict_of(whole.get("properties")).items()}


def input_metadata(method: MethodSpec) -> list[TensorMetadata]:
    """What a model takes."""
    required = method.input_schema.get("required")
    needed = required if isinstance(required, list | tuple) else ()
    return [
        TensorMetadata(name, kind.shown_datatype, kind.shape, name not in needed)
        for name, kind in parameter_kinds(method).items()
        if kind.form is not ValueForm.OBJECT
    ]


def output_metadata(method: MethodSpec) -> list[TensorMetadata]:
    """What a model answers, or what each of its answers is; of a function without a hint, what is most likely."""
    kinds = answer_kinds(method) or {OUTPUT: kind_of(method.output_schema, method.output_schema)}
    kinds = {name: kind for name, kind in kinds.items() if kind.form is not ValueForm.OBJECT}
    return [TensorMetadata(name, kind.shown_datatype, kind.shape) for name, kind in kinds.items()]


def kind_of(schema: Any, root: SchemaPart) -> ValueKind:
    """What a part of the schema `root`, which may say anything, describes."""
    return _KindReader(root).kind(schema)


class _KindReader:
    def __init__(self, root: SchemaPart) -> None:
        self._root = root
        self._left = MOST_PARTS

    def kind(self, schema: Any) -> ValueKind:
        part = self.resolved(schema)
        if not part:
            return UNKNOWN
        if part.get(ARRAY_KEY) == "ndarray":
            return ValueKind(ValueForm.ARRAY, DATATYPES.get(str(part.get(DTYPE_KEY)), ""))
        for word in ("anyOf", "oneOf"):
            if isinstance(arms := part.get(word), list):
                return _kind_of_arms([self.kind(arm) for arm in arms if not _is_null(arm)])
        return self._of_type(part)

    def resolved(self, schema: Any) -> SchemaPart:
        """The part itself, where a reference leads to it."""
        while isinstance(schema, dict) and self._left:
            self._left -= 1
            if not isinstance(reference := schema.get("$ref"), str):
                return schema
            schema = _dict_of(self._root.get("$defs")).get(reference.rpartition("/")[2])
        return {}

    def _of_type(self, part: SchemaPart) -> ValueKind:
        names = part.get("type")
        name = next((one for one in names if one != "null"), None) if isinstance(names, list) else names
        if name == "array":
            return self._of_items(part)
        if name == "string" or (name is None and _is_texts(part)):
            return ValueKind(ValueForm.SCALAR, BYTES, (1,), is_text=part.get("contentEncoding") != "base64")
        if isinstance(name, str) and name in SCALARS:
            return ValueKind(ValueForm.SCALAR, SCALARS[name], (1,))
        return ValueKind(ValueForm.OBJECT) if name == "object" else UNKNOWN

    def _of_items(self, part: SchemaPart) -> ValueKind:
        inner = self.kind(part.get("items"))
        if inner.form is ValueForm.OBJECT:
            return inner
        shape = (-1, *inner.shape) if inner.form is ValueForm.LIST else (-1,)
        datatype = inner.datatype if inner.form is not ValueForm.ARRAY else ""
        return ValueKind(ValueForm.LIST, datatype, shape, inner.is_text)


def _kind_of_arms(kinds: list[ValueKind]) -> ValueKind:
    """Of several that are possible an array goes first: whatever comes as numbers is one already."""
    arrays = [kind for kind in kinds if kind.form is ValueForm.ARRAY]
    return (arrays or kinds or [UNKNOWN])[0]


def _dict_of(value: Any) -> SchemaPart:
    return value if isinstance(value, dict) else {}


def _is_null(arm: Any) -> bool:
    return isinstance(arm, dict) and arm.get("type") == "null"


def _is_texts(part: SchemaPart) -> bool:
    values = part.get("enum", [part["const"]] if "const" in part else [])
    return isinstance(values, list) and bool(values) and all(isinstance(value, str) for value in values)
