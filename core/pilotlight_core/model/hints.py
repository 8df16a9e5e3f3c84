"""Values off the wire as type hints say: dataclasses, dates, arrays and tensors of what stands for them in JSON."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import typing
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

Convert = Callable[[Any], Any]


class _Unknown(Exception):
    """A hint that cannot be converted to: the value is passed as it came."""


def converter(hint: Any) -> Convert | None:
    """A function that converts a value off the wire to `hint`; None where values are passed as they come.

    JSON callers send bytes as base64 and arrays as nested lists; dataclasses, structs, enums, dates and pydantic models
    come as JSON types. A value that already fits is left alone.
    """
    if hint in (Any, object, inspect.Parameter.empty):
        return None
    try:
        msgspec.convert(None, hint, dec_hook=_never)
    except (msgspec.ValidationError, _Unknown):
        pass
    except Exception:  # noqa: BLE001 - a hint that msgspec cannot read is no error
        return None

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, hint, dec_hook=_custom)
        except _Unknown:
            return value
        except msgspec.ValidationError:
            return _lenient(value, hint)

    if not _has_dataclass(hint):
        return convert

    def convert_whole(value: Any) -> Any:
        converted = convert(value)
        _set_defaults(converted)
        return converted

    return convert_whole


def _has_dataclass(hint: Any, seen: tuple[Any, ...] = ()) -> bool:
    """Whether values of the hint may hold dataclasses, or structs, which may hold some."""
    if dataclasses.is_dataclass(hint) or isinstance(hint, type(msgspec.Struct)):
        return True
    is_named_tuple = isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")
    if is_named_tuple or typing.is_typeddict(hint):
        inner = () if hint in seen else _hints_of(hint).values()
        return any(_has_dataclass(each, (*seen, hint)) for each in inner)
    return any(_has_dataclass(each, seen) for each in typing.get_args(hint))


def _hints_of(cls: type) -> dict[str, Any]:
    """The hints of a class's fields; none if they cannot be read."""
    try:
        return typing.get_type_hints(cls)
    except Exception:  # noqa: BLE001 - a name that is not there, for example
        return {}


@cache
def _holders(cls: type, names: tuple[str, ...]) -> frozenset[str]:
    """The fields of a class whose values may hold dataclasses: a long list of numbers is not walked."""
    hints = _hints_of(cls)
    return frozenset(name for name in names if name not in hints or _has_dataclass(hints[name]))


def _set_defaults(value: Any) -> None:
    """Give every dataclass in `value` its defaults: msgspec leaves them to the class, and writes only what is set."""
    if isinstance(value, list | tuple | set | frozenset):
        for each in value:
            _set_defaults(each)
    elif isinstance(value, dict):
        for each in value.values():
            _set_defaults(each)
    elif isinstance(value, msgspec.Struct):
        for name in _holders(type(value), value.__struct_fields__):
            _set_defaults(getattr(value, name))
    elif dataclasses.is_dataclass(value):
        names = tuple(field.name for field in dataclasses.fields(value))
        own = getattr(value, "__dict__", dict.fromkeys(names))  # with slots all are set
        for name in names:
            if name not in own:
                object.__setattr__(value, name, getattr(value, name))
        cls: Any = type(value)
        for name in _holders(cls, names):
            _set_defaults(getattr(value, name))


def _never(_hint: Any, _value: Any) -> Any:
    # Whether msgspec reads a hint is asked without a value: of None no tensor can be made, for example.
    raise _Unknown


def _lenient(value: Any, hint: Any) -> Any:
    # Only for what the strict reading refuses: 3.0 is an integer to JSON Schema. Tried first, it would make 3 of "3".
    try:
        return msgspec.convert(value, hint, dec_hook=_custom, strict=False)
    except _Unknown:
        return value


def _custom(hint: Any, value: Any) -> Any:
    cls = typing.get_origin(hint) or hint
    if isinstance(cls, type) and isinstance(value, cls):
        return value
    # Never imported here: code with such a hint has imported them.
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and cls is numpy.ndarray:
        return numpy.asarray(value, dtype=_dtype(hint, numpy.generic))
    if numpy is not None and isinstance(cls, type) and issubclass(cls, numpy.generic):
        return cls(value)
    if torch is not None and (cls is torch.Tensor or type(cls) is type(torch.LongTensor)):
        return _tensor(torch, cls, value)
    if hasattr(cls, "model_validate"):
        return cls.model_validate(value)
    raise _Unknown


def _tensor(torch: Any, cls: Any, value: Any) -> Any:
    """A tensor of nested lists; `torch.LongTensor` and its like are tensors of one dtype."""
    try:
        return torch.as_tensor(value, dtype=None if cls is torch.Tensor else cls.dtype)
    except RuntimeError as error:  # what it says of a value that is no number, and of numbers that are too large
        raise ValueError(str(error)) from None


def _dtype(hint: Any, scalar: type) -> Any:
    """float32 of `NDArray[np.float32]`, which is `ndarray[Any, dtype[float32]]`; None without one."""
    for argument in typing.get_args(hint)[1:]:
        for kind in typing.get_args(argument):
            return kind if isinstance(kind, type) and issubclass(kind, scalar) else None
    return None
