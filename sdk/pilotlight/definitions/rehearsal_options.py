"""Options of what a container does before calls reach it: `warmup=`, `check=`, `check_every=`, `check_timeout=`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import UNSET, UnsetType

from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.signature import Callee
from pilotlight_core.model.rehearsals.rehearsal import (
    CHECK_EVERY_S,
    CHECK_TIMEOUT_S,
    TOLERANCE,
    CheckExample,
    Rehearsal,
    WarmupExample,
)

OPTIONS = ("warmup", "check", "check_every", "check_timeout")
NO_OUTPUT: Final = object()
"""The output of an example that says none."""


@dataclass(frozen=True)
class Example:
    """A call of a function: `warmup=` takes some, `check=` one with its answer.

    Attributes:
        input: Its arguments by name; of a batched method several, which are one batch.
        output: The answer that a check expects; of a generator the list of its chunks.
        method: Of a class with several methods: which.
        tolerance: How far numbers of the answer may be from the expected ones, as a part of them.
    """

    input: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    output: Any = NO_OUTPUT
    method: str = ""
    tolerance: float = TOLERANCE


def rehearsal_of(
    options: Mapping[str, Any], callees: tuple[Callee, ...], checks: tuple[str, ...], *, has_own_check: bool
) -> Rehearsal | UnsetType:
    """Return what a function's containers do before calls reach them; UNSET if it says nothing of it.

    `checks` are its methods marked `@check()`, `has_own_check` is whether it has a `__check__`.

    Raises:
        OptionError: naming the option.
    """
    given = [name for name in OPTIONS if options.get(name) is not None]
    if not given and not checks:
        return UNSET
    example = _check_example(options.get("check"), callees)
    has_check = bool(checks) or example is not None
    for name in ("check_every", "check_timeout"):
        if name in given and not (has_check or has_own_check):
            raise OptionError(f"{name}= needs a check: check=Example(…), or a method marked @check().", field=name)
    return Rehearsal(
        warmup=_warmup_examples(options.get("warmup"), callees),
        checks=checks,
        example=example,
        check_every=_seconds(options, "check_every", CHECK_EVERY_S if has_check else 0.0),
        check_timeout=_seconds(options, "check_timeout", CHECK_TIMEOUT_S),
    )


def _seconds(options: Mapping[str, Any], name: str, default: float) -> float:
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OptionError(f"{name}={value!r}: expected seconds.", field=name)
    return float(value)


def _warmup_examples(given: Any, callees: tuple[Callee, ...]) -> tuple[WarmupExample, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise OptionError(
            'warmup= expects a list of inputs, such as [{"text": "hello"}], or of Example(input, method=).',
            field="warmup",
        )
    examples = (one if isinstance(one, Example) else Example(one) for one in given)
    return tuple(
        WarmupExample(method=example.method, inputs=_inputs("warmup", example, callees)) for example in examples
    )


def _check_example(given: Any, callees: tuple[Callee, ...]) -> CheckExample | None:
    if given is None:
        return None
    if not isinstance(given, Example) or given.output is NO_OUTPUT:
        raise OptionError('check= expects Example({"text": "hello"}, output=…): a call and its answer.', field="check")
    inputs = _inputs("check", given, callees)
    if len(inputs) != 1:
        raise OptionError("check= expects one input, also of a batched method.", field="check")
    if isinstance(given.tolerance, bool) or not isinstance(given.tolerance, int | float):
        raise OptionError(f"check=: tolerance={given.tolerance!r}: expected a number.", field="check")
    output = _encoded("check", "output", given.output)
    return CheckExample(method=given.method, input=inputs[0], output=output, tolerance=float(given.tolerance))


def _inputs(option: str, example: Example, callees: tuple[Callee, ...]) -> tuple[bytes, ...]:
    """Return the encoded inputs of an example, whose names fit the method."""
    rows = [example.input] if isinstance(example.input, Mapping) else example.input
    if not isinstance(rows, list | tuple) or not all(isinstance(row, Mapping) for row in rows):
        raise OptionError(
            f"{option}=: an input is a dict of arguments by name, not {example.input!r:.100}.", field=option
        )
    callee = callees[0] if len(callees) == 1 and not example.method else None
    callee = callee or next((one for one in callees if one.name == example.method), None)
    if callee is not None:  # else the specification is refused, which says why
        for row in rows:
            try:
                callee.bind_arguments((), dict(row))
            except TypeError as error:
                raise OptionError(f"{option}=: {callee.label}: {error}.", field=option) from None
    return tuple(_encoded(option, "input", dict(row)) for row in rows)


def _encoded(option: str, what: str, value: Any) -> bytes:
    from pilotlight_core.model import values  # few functions have examples

    try:
        return values.encode(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{option}=: its {what} cannot be sent: {error}.", field=option) from None
