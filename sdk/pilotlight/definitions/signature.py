"""The MethodSpec of a function, from its signature and type hints."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from pilotlight.definitions.decorated import BatchOptions
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.schemas.schema import Schema, chunk_of, item_of, schema_of
from pilotlight_core.model.hints import Convert, converter
from pilotlight_core.model.schema_examples import ORDER
from pilotlight_core.model.spec import Batching, MethodSpec, Mode

MAX_DEFAULT_BYTES = 256
"""Larger defaults are left out of the schema."""
MAX_DESCRIPTION = 1000
NUMBERS = (int, float)
METHOD = "x-pilotlight-method"
"""Key of an input schema: the method."""


class Callee(msgspec.Struct, frozen=True, kw_only=True):
    """A function that calls may name, as its author wrote it."""

    function: Callable[..., Any]
    name: str
    """The method's; "" for a plain function."""
    attribute: str
    is_method: bool = False
    batched: BatchOptions | None = None
    first: Callee | None = None
    """The preprocess hook, which gets the arguments of a call; None: there is none."""
    last: Callee | None = None
    """The postprocess hook, whose answer a call has; None: there is none."""

    @property
    def mode(self) -> Mode:
        yields = inspect.isgeneratorfunction(self.function) or inspect.isasyncgenfunction(self.function)
        return Mode.GENERATOR if yields else Mode.UNARY

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function)

    @property
    def label(self) -> str:
        """Its name in messages."""
        return self.attribute

    def parameters(self) -> list[inspect.Parameter]:
        """Return the parameters in order, without `self`."""
        found = list(inspect.signature(self.function).parameters.values())
        return found[1:] if self.is_method else found

    @property
    def answer_hint(self) -> Any:
        """The type of one answer, of a generator of one chunk; Any if that is not known."""
        answer = hint_of(self.function, "return", inspect.signature(self.function).return_annotation)
        if self.batched is not None:
            return item_of(answer)[1] if item_of(answer)[0] else Any
        return chunk_of(answer) if self.mode is Mode.GENERATOR else answer

    def bind_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name: those of its preprocess hook, if there is one.

        Raises:
            TypeError: as `bind_arguments`.
        """
        return (self.first or self).bind_arguments(args, kwargs)

    def bind_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name.

        Raises:
            TypeError: as the function would, if they do not fit.
        """
        bound = inspect.Signature(self.parameters()).bind(*args, **kwargs)
        rest = {p.name for p in self.parameters() if p.kind is p.VAR_KEYWORD}
        named = {name: value for name, value in bound.arguments.items() if name not in rest}
        return named | {key: value for name in rest for key, value in bound.arguments.get(name, {}).items()}


def method_spec(callee: Callee) -> MethodSpec:
    """Return the MethodSpec of a function.

    Raises:
        OptionError: if a parameter cannot be sent, or the function cannot be batched.
    """
    parameters = callee.parameters()
    for parameter in parameters:
        _check_parameter(callee, parameter)
    hints = {p.name: hint_of(callee.function, p.name, p.annotation) for p in parameters}
    if callee.batched is not None:
        hints = {p.name: _item(callee, p, hints[p.name]) for p in parameters}
    return MethodSpec(
        name=callee.name,
        attribute=callee.attribute,
        mode=callee.mode,
        is_async=callee.is_async,
        input_schema=_input_schema(callee, parameters, hints),
        output_schema=_output_schema(callee.answer_hint),
        batching=_batching(callee, hints),
    )


def named_spec(callee: Callee) -> MethodSpec:
    """Return the MethodSpec of a function without schemas, which take longer than the rest of a module's import."""
    return MethodSpec(
        name=callee.name, attribute=callee.attribute, mode=callee.mode, is_async=callee.is_async,
        input_schema={}, output_schema={},
    )  # fmt: skip


@lru_cache(maxsize=1024)
def answer_converter(callee: Callee) -> Convert | None:
    """Return what makes an answer of what came off the wire; None: it is the answer as it came."""
    return converter((callee.last or callee).answer_hint)


def hint_of(function: Callable[..., Any], name: str, annotation: Any) -> Any:
    """Return the evaluated type hint, or its text where a name in it is unknown."""
    if annotation is inspect.Parameter.empty:
        return Any
    holder = types.SimpleNamespace(__annotations__={name: annotation})
    try:
        namespace = getattr(inspect.unwrap(function), "__globals__", {})
        return typing.get_type_hints(holder, globalns=namespace, include_extras=True)[name]
    except Exception:  # noqa: BLE001 - evaluating a tenant's annotation may fail in any way
        return annotation if isinstance(annotation, str) else Any


def _check_parameter(callee: Callee, parameter: inspect.Parameter) -> None:
    reasons: dict[Any, str] = {
        parameter.POSITIONAL_ONLY: "is positional-only, and arguments travel by name: remove the '/'",
        parameter.VAR_POSITIONAL: "cannot travel, for arguments travel by name: take a list instead",
    }
    if callee.batched is not None:
        reasons[parameter.VAR_KEYWORD] = "cannot be batched: name the parameters"
        if parameter.default is not parameter.empty:
            raise OptionError(f"{callee.label}: a batch has a value per item, so {parameter.name} can have no default.")
    if parameter.kind in reasons:
        raise OptionError(f"{callee.label}: the parameter {parameter} {reasons[parameter.kind]}.", field=parameter.name)


def _item(callee: Callee, parameter: inspect.Parameter, hint: Any) -> Any:
    is_list, item = item_of(hint)
    if not is_list:
        shown = parameter.annotation if isinstance(parameter.annotation, str) else inspect.formatannotation(hint)
        raise OptionError(
            f"{callee.label}: a batched function gets a list per parameter: annotate {parameter.name}: list[{shown}].",
            field=parameter.name,
        )
    return item


def _input_schema(callee: Callee, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> Schema:
    definitions: dict[str, Schema] = {}
    schema: Schema = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for parameter in parameters:
        described = schema_of(hints[parameter.name], definitions)
        if parameter.kind is parameter.VAR_KEYWORD:
            schema["additionalProperties"] = described or True
            continue
        if parameter.default is parameter.empty:
            schema["required"].append(parameter.name)
        elif _small_json(parameter.default):
            described |= {"default": parameter.default}
        schema["properties"][parameter.name] = described
    schema[ORDER] = list(schema["properties"])
    schema[METHOD] = callee.name
    if text := inspect.getdoc(callee.function):
        schema["description"] = text[:MAX_DESCRIPTION]
    return schema | ({"$defs": definitions} if definitions else {})


def _output_schema(answer: Any) -> Schema:
    definitions: dict[str, Schema] = {}
    if answer is None:
        answer = type(None)
    schema = schema_of(answer, definitions)
    return schema | ({"$defs": definitions} if definitions else {})


def _small_json(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float | str | list | dict):
        try:
            return len(msgspec.json.encode(value)) <= MAX_DEFAULT_BYTES
        except (TypeError, ValueError, RecursionError):
            return False
    return False


def _batching(callee: Callee, hints: dict[str, Any]) -> Batching | None:
    options = callee.batched
    if options is None:
        return None
    if callee.mode is Mode.GENERATOR:
        raise OptionError(f"{callee.label}: a generator cannot be batched: return a list.")
    if not hints:
        raise OptionError(f"{callee.label}: a batched function needs a parameter: that is what a batch is made of.")
    return Batching(
        max_batch_size=options.max_batch_size,
        wait_ms=options.wait_ms,
        cost_of=_cost_of(callee, options.cost, hints),
        max_batch_cost=options.max_batch_cost,
    )


def _cost_of(callee: Callee, cost: str | None, hints: dict[str, Any]) -> str | None:
    if cost is None:
        return None
    if cost == "len":
        if len(hints) != 1:
            raise OptionError(
                f'{callee.label}: cost=len needs a single parameter; write cost="len:{next(iter(hints))}".'
            )
        return f"len:{next(iter(hints))}"
    kind, _, name = cost.rpartition(":")
    if name not in hints or kind not in ("", "len", "value"):
        raise OptionError(
            f"{callee.label}: cost={cost!r} must be len or one of its parameters ({', '.join(hints)}), "
            'as "PARAM", "len:PARAM" or "value:PARAM".',
            field="cost",
        )
    return f"{kind or ('value' if hints[name] in NUMBERS else 'len')}:{name}"
