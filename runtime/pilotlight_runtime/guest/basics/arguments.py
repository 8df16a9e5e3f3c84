"""From the wire's named arguments to a function's parameters, by its type hints."""

from __future__ import annotations

import importlib
import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.errors import BadInput as UnreadableValue
from pilotlight_core.model.hints import Convert, converter
from pilotlight_runtime.guest.basics.remote_errors import BadArguments

LISTS = (list, Sequence, Iterable, tuple, typing.Sequence, typing.Iterable)
ARRAYS = {"ndarray": ("numpy", "ndarray"), "NDArray": ("numpy", "ndarray"), "Tensor": ("torch", "Tensor")}
EMPTY = inspect.Parameter.empty


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
