"""Write a value of every stored type, as this tree encodes it: `python -m tests.releases.make_samples FILE`."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from pilotlight_core.model.spec import Manifest
from pilotlight_core.model.versions.manifest_codec import encode_manifest
from tests.releases.stored_types import JSON_FILES, MESSAGES, RECORDS


def value_of(kind: Any, *, full: bool) -> Any:
    """A value of a type: with every field, or with those that must be."""
    match kind:
        case inspect.Metadata():
            return value_of(kind.type, full=full)
        case inspect.StructType():
            fields = [field for field in kind.fields if full or field.required]
            return kind.cls(**{field.name: value_of(field.type, full=full) for field in fields})
        case inspect.UnionType():
            best = next((one for one in kind.types if not isinstance(one, inspect.NoneType)), kind.types[0])
            return value_of(best, full=full) if full or not kind.includes_none else None
        case inspect.TupleType():
            return tuple(value_of(one, full=full) for one in kind.item_types)
        case inspect.DictType():
            return {value_of(kind.key_type, full=full): value_of(kind.value_type, full=full)} if full else {}
        case inspect.CollectionType():
            made = [value_of(one, full=True) for one in alternatives(kind.item_type)] if full or kind.min_length else []
            return COLLECTIONS[type(kind)](made)
    return scalar_of(kind)


def scalar_of(kind: Any) -> Any:
    """A value of a type without parts."""
    match kind:
        case inspect.EnumType():
            return list(kind.cls)[-1]
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.StrType():
            if kind.pattern is not None:
                return next(text for text in PATTERNED if re.search(kind.pattern, text))
            return "text"[: kind.max_length]
        case inspect.BytesType():
            return b"\x00bytes\xff".ljust(kind.min_length or 0)
        case inspect.IntType() | inspect.FloatType():
            least = kind.ge if kind.ge is not None else (kind.gt or 0) + 1
            number = min(max(least, 3), kind.le if kind.le is not None else least + 3)
            return number if isinstance(kind, inspect.IntType) else float(number) + (0.0 if kind.le == number else 0.25)
    return CONSTANTS[type(kind)]


PATTERNED = ("text", "10%")
"""One of them fits each pattern that there is."""
CONSTANTS: dict[type, Any] = {
    inspect.BoolType: True,
    inspect.NoneType: None,
    inspect.AnyType: {"any": [1, "thing"]},
    inspect.RawType: msgspec.Raw(msgspec.msgpack.encode({"raw": 1})),
}
COLLECTIONS: dict[type, Callable[[list[Any]], Any]] = {
    inspect.VarTupleType: tuple, inspect.ListType: list, inspect.SetType: set, inspect.FrozenSetType: frozenset,
}  # fmt: skip


def alternatives(kind: Any) -> tuple[Any, ...]:
    """What an item of a tuple may be: each is in the sample."""
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


def inner_kinds(kind: Any) -> Iterator[Any]:
    """The type, and all that it is made of."""
    yield kind
    match kind:
        case inspect.StructType():
            parts: tuple[Any, ...] = tuple(field.type for field in kind.fields)
        case inspect.Metadata():
            parts = (kind.type,)
        case inspect.UnionType():
            parts = kind.types
        case inspect.DictType():
            parts = (kind.key_type, kind.value_type)
        case inspect.TupleType():
            parts = kind.item_types
        case inspect.CollectionType():
            parts = (kind.item_type,)
        case _:
            parts = ()
    for part in parts:
        yield from inner_kinds(part)


def enums() -> dict[str, list[Any]]:
    """The values of every enumeration that is stored or sent."""
    return {
        kind.cls.__name__: [each.value for each in kind.cls]
        for cls in (MESSAGES | RECORDS | JSON_FILES).values()
        for kind in inner_kinds(inspect.type_info(cls))
        if isinstance(kind, inspect.EnumType)
    }


def encode_file(value: msgspec.Struct) -> bytes:
    """As the release writes it."""
    return encode_manifest(value) if isinstance(value, Manifest) else msgspec.json.encode(value)


def samples() -> dict[str, dict[str, Any]]:
    """By type: the bytes of the least and of the fullest value, in base64, and what this tree reads in them."""
    found: dict[str, dict[str, Any]] = {}
    for types, encode, decode in (
        (MESSAGES | RECORDS, msgspec.msgpack.encode, msgspec.msgpack.decode),
        (JSON_FILES, encode_file, msgspec.json.decode),
    ):
        for name, cls in types.items():
            found[name] = {}
            for which in ("least", "full"):
                data = encode(value_of(inspect.type_info(cls), full=which == "full"))
                read = msgspec.to_builtins(decode(data, type=cls), str_keys=True)
                found[name][which] = {"bytes": base64.b64encode(data).decode(), "read": read}
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps({"enums": enums(), "samples": samples()}, indent=1, sort_keys=True) + "\n")
