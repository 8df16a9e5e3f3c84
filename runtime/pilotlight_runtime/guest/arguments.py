"""From the wire's named arguments to a function's parameters, by its type hints."""

from __future__ import annotations

import importlib
import inspect
import sys
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput as UnreadableValue
from pilotlight_runtime.guest.remote_errors import BadArguments

Convert = Callable[[Any], Any]
LISTS = (list, Sequence, Iterable, tuple, typing.Sequence, typing.Iterable)
ARRAYS = {"ndarray": ("numpy", "ndarray"), "NDArray": ("numpy", "ndarray"), "Tensor": ("torch", "Tensor")}
EMPTY = inspect.Parameter.empty


class _Unknown(Exception):
    """A hint that cannot be converted to: the value is passed as it came."""


class Parameters:
    """The parameters of one function. With `columns` it takes lists, one element per item of a batch."""

    def __init__(self, function: Callable[..., Any], *, columns: bool = False) -> None:
        known = _signature(function)
        self._any_name = any(p.kind is p.VAR_KEYWORD for p in known)
        named = [p for p in known if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self._positional = tuple(p.name for p in named if p.kind is p.POSITIONAL_ONLY)
        self._defaults = {p.name: p.default for p in named if p.default is not EMPTY}
        self._required = tuple(p.name for p in named if p.default is EMPTY)
        self._converts: dict[str, Convert | None] = {}
        for parameter in named:
            hint = parameter.annotation
            self._converts[parameter.name] = converter(_element(hint) if columns else hint)

    def read(self, data: bytes) -> dict[str, Any]:
        """The converted arguments by name in msgpack `data`.

        Raises:
            BadArguments: naming the parameter.
        """
        try:
            named = values.decode(data)
        except (msgspec.DecodeError, UnreadableValue, UnicodeDecodeError, ImportError, AttributeError) as error:
            raise BadArguments(f"the input cannot be read: {error}") from error
        if type(named) is not dict:
            raise BadArguments(f"the input is a {type(named).__name__}: expected an object of named arguments")
        for name, value in named.items():
            named[name] = self._converted(name, value)
        for name in self._required:
            if name not in named:
                raise BadArguments(f"{name}: the argument is missing")
        return named

    def _converted(self, name: str, value: Any) -> Any:
        try:
            convert = self._converts[name]
        except KeyError:
            if self._any_name and isinstance(name, str):
                return value
            raise BadArguments(f"{name}: there is no such argument; there are {', '.join(self._converts)}") from None
        if convert is None:
            return value
        try:
            return convert(value)
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            raise BadArguments(f"{name}: {error}") from error

    def place(self, named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as `function(*first, **second)` takes them."""
        if not self._positional:
            return [], named
        rest = dict(named)
        first = []
        for name in self._positional:
            if name not in rest and name not in self._defaults:
                break
            first.append(rest.pop(name) if name in rest else self._defaults[name])
        return first, rest

    def columns(self, items: list[dict[str, Any]]) -> dict[str, list[Any]]:
        """One list per parameter that any item names, None for items that do not name it."""
        names = dict.fromkeys(name for item in items for name in item)
        return {name: [item.get(name) for item in items] for name in names}


def converter(hint: Any) -> Convert | None:
    """A function that converts a value off the wire to `hint`; None where values are passed as they come.

    JSON callers send bytes as base64 and arrays as nested lists; dataclasses, structs, enums, dates and pydantic models
    come as JSON types. A value that already fits is left alone.
    """
    if hint in (Any, object, EMPTY):
        return None
    try:
        msgspec.convert(None, hint, dec_hook=_custom)
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

    return convert


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
    if torch is not None and cls is torch.Tensor:
        return torch.as_tensor(value)
    if hasattr(cls, "model_validate"):
        return cls.model_validate(value)
    raise _Unknown


def _dtype(hint: Any, scalar: type) -> Any:
    """float32 of `NDArray[np.float32]`, which is `ndarray[Any, dtype[float32]]`; None without one."""
    for argument in typing.get_args(hint)[1:]:
        for kind in typing.get_args(argument):
            return kind if isinstance(kind, type) and issubclass(kind, scalar) else None
    return None


def _element(hint: Any) -> Any:
    """T of `list[T]`."""
    arguments = typing.get_args(hint)
    return arguments[0] if arguments and typing.get_origin(hint) in LISTS else Any


def _signature(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # written in C: its parameters are unknown
        return [inspect.Parameter("named", inspect.Parameter.VAR_KEYWORD)]
    space = getattr(inspect.unwrap(function), "__globals__", {})
    return [p.replace(annotation=_evaluated(p.annotation, space)) for p in parameters]


def _evaluated(hint: Any, space: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, space)  # noqa: S307 - it is the tenant's own code, in the tenant's own sandbox
    except Exception:  # noqa: BLE001 - the same
        return _array_type(hint)


def _array_type(hint: str) -> Any:
    """The array type that an unevaluated hint names, else Any; the SDK's schemas use the name too."""
    module, name = ARRAYS.get(hint.rpartition(".")[2].partition("[")[0], ("", ""))
    try:
        return getattr(importlib.import_module(module), name) if module else Any
    except ImportError:
        return Any
