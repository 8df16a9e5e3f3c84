"""Structs that refuse unknown fields.

What is stored or sent is read by processes of other releases, so a struct ignores the fields that it does not know.
What a person or a client writes is read by its strict form: there an unknown field is a slip, and is named.
"""

from __future__ import annotations

import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")


_made: dict[type[Any], type[Any]] = {}


def strict(kind: type[T]) -> type[T]:
    """A subclass of the struct `kind` that refuses unknown fields, also of every struct in it; `kind` if it does.

    It is for checking alone: a value of it equals none of `kind`. Its name ends with "Input".
    """
    if not issubclass(kind, msgspec.Struct):
        return kind
    if kind not in _made:
        _made[kind] = _strict_form(kind)
    return _made[kind]


def _strict_form(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    hints = get_type_hints(kind, include_extras=True)
    changed = [
        (field.name, inner, _default(field))
        for field in msgspec.structs.fields(kind)
        if (inner := _strict_type(hints[field.name])) is not hints[field.name]
    ]
    if not changed and kind.__struct_config__.forbid_unknown_fields:
        return kind
    made = msgspec.defstruct(
        f"{kind.__name__}Input",
        changed,
        bases=(kind,),
        module=kind.__module__,
        kw_only=True,
        frozen=kind.__struct_config__.frozen,
        forbid_unknown_fields=True,
    )
    made.__doc__ = kind.__doc__
    return made


def convert_strictly(value: Any, kind: type[T]) -> T:
    """The objects, lists and scalars of a document as a `kind`, without unknown fields.

    Raises:
        msgspec.ValidationError.
    """
    msgspec.convert(value, strict(kind))
    return msgspec.convert(value, kind)


def _strict_type(hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is None:
        return strict(hint) if isinstance(hint, type) else hint
    if origin is Literal:
        return hint
    before = get_args(hint)
    if origin is Annotated:
        inner = _strict_type(before[0])
        return hint if inner is before[0] else Annotated[(inner, *before[1:])]
    after = tuple(each if each is Ellipsis else _strict_type(each) for each in before)
    if all(one is other for one, other in zip(before, after, strict=True)):
        return hint
    return Union[after] if origin in (Union, types.UnionType) else origin[after]  # noqa: UP007 - made of a tuple


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return msgspec.field(default_factory=field.default_factory)
    return msgspec.field(default=field.default) if field.default is not msgspec.NODEFAULT else msgspec.field()
