"""Decorators below `gpu_function`: hooks of a class, `@method()`, `@batched()`, `@concurrent()`.

A marker is an attribute of the plain function; a marked class stays as its author wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeGuard, TypeVar, cast, overload

import msgspec

from pilotlight.definitions.decorated import ATTRIBUTE, BatchOptions, Decorated, HookOptions, markers_of
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.hints.migration_hints import BATCHED_HINTS, CONCURRENT_HINTS, NOT_YET, explain_unknown
from pilotlight.definitions.options import spec_fields
from pilotlight.definitions.schedules import Cron, Period, schedule_of
from pilotlight_core.model.pipelines.pipeline import HookKind

if TYPE_CHECKING:
    from pilotlight.function import Function

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")

MAX_BATCH_SIZE = 1000
MAX_WAIT_MS = 600_000
MAX_INPUTS = 10_000


def _mark(thing: C, **markers: Any) -> C:
    if isinstance(thing, Decorated):
        raise OptionError("@gpu_function belongs on top: the other decorators stand below it.")
    if isinstance(thing, staticmethod | classmethod | property):
        raise OptionError(f"a {type(thing).__name__} cannot be marked: mark a plain method.")
    if not callable(thing):
        raise OptionError(f"{thing!r} cannot be marked: mark a function or a method.")
    setattr(thing, ATTRIBUTE, msgspec.structs.replace(markers_of(thing), **markers))
    return thing


def _refuse_unknown(decorator: str, unknown: dict[str, Any], known: frozenset[str], hints: dict[str, str]) -> None:
    for name in unknown:
        raise OptionError(f"@{decorator}: {explain_unknown(name, known, hints)}", field=name)


ONLY_OPTION = {"method": "its one option is schedule=", "enter": "its one option is stage="}


def _hook(kind: str, function: F | None, unknown: dict[str, Any], **more: Any) -> Any:
    takes = ONLY_OPTION.get(kind, f"@{kind}() takes no options")
    for name in unknown:
        later = NOT_YET["enable_memory_snapshot"] if name == "snap" else takes
        raise OptionError(f"@{kind}: {name}= is not supported: {later}.", field=name)
    markers = {kind: True} | more
    if function is None:
        return lambda marked: _mark(marked, **markers)
    return _mark(function, **markers)


@overload
def enter(function: F, /) -> F: ...
@overload
def enter(*, stage: Literal["preprocess", "postprocess"] | None = None) -> Callable[[F], F]: ...
def enter(function: Any = None, /, *, stage: Any = None, **unknown: Any) -> Any:
    """Mark a method that runs once in each container, before its first call: load the model in it.

    Args:
        function: the method, where the mark stands without parentheses.
        stage: "preprocess" or "postprocess": it runs in the containers of that hook, and not in those of the methods.

    Raises:
        OptionError: for any other option, as `exit` and `method`.
    """
    if stage is not None and stage not in tuple(HookKind):
        raise OptionError(f'@enter: stage={stage!r}: expected "preprocess" or "postprocess".', field="stage")
    return _hook("enter", function, unknown, enter_for=str(stage or ""))


@overload
def exit(function: F, /) -> F: ...  # noqa: A001 - the hook's name, as everywhere
@overload
def exit() -> Callable[[F], F]: ...  # noqa: A001
def exit(function: Any = None, /, **unknown: Any) -> Any:  # noqa: A001
    """Mark a method that runs at the orderly end of a container."""
    return _hook("exit", function, unknown)


@overload
def park(function: F, /) -> F: ...
@overload
def park() -> Callable[[F], F]: ...
def park(function: Any = None, /, **unknown: Any) -> Any:
    """Mark a method that leaves the GPU while nobody calls: `self.model.to("cpu")`, and drop what is not needed.

    A class on a GPU with `park` and `unpark` is parked instead of ended where its start takes long: its process stays,
    in the host's memory, and the GPU is free. Classes on CPU slots are parked without.
    """
    return _hook("park", function, unknown)


@overload
def unpark(function: F, /) -> F: ...
@overload
def unpark() -> Callable[[F], F]: ...
def unpark(function: Any = None, /, **unknown: Any) -> Any:
    """Mark a method that returns to the GPU, the same one, before the next call: `self.model.to("cuda")`."""
    return _hook("unpark", function, unknown)


@overload
def check(function: F, /) -> F: ...
@overload
def check() -> Callable[[F], F]: ...
def check(function: Any = None, /, **unknown: Any) -> Any:
    """Mark a method that finds out whether an instance is fit for calls: it raises or returns False if it is not.

    It runs after the `@enter()` hooks and the examples of `warmup=`, and again every `check_every=` seconds. There may
    be several.
    """
    return _hook("check", function, unknown)


@overload
def drain(function: F, /) -> F: ...
@overload
def drain() -> Callable[[F], F]: ...
def drain(function: Any = None, /, **unknown: Any) -> Any:
    """Mark a method that runs when its container's node is taken away: write what would be lost to where it lasts.

    It runs once, beside the calls that go on, in a thread of its own (an asynchronous one of a class with asynchronous
    methods in their event loop), before any of them is ended early. Until then it has some seconds: with a notice of
    two minutes almost all of them, without a notice none. `@exit()` hooks run after it.
    """
    return _hook("drain", function, unknown)


@overload
def preprocess(function: F, /) -> F: ...
@overload
def preprocess(
    *, cpu: float = ..., memory: str | int = ..., max_containers: int = ..., max_inputs: int = ...
) -> Callable[[F], F]: ...
def preprocess(
    function: Any = None,
    /,
    *,
    cpu: float | None = None,
    memory: str | int | None = None,
    max_containers: int | None = None,
    max_inputs: int | None = None,
    **unknown: Any,
) -> Any:
    """Mark the method through which the input of every call goes first, in containers of its own on CPU slots.

    Callers pass its parameters. What it returns is the only parameter of the method that they call; where that has
    several, it returns a dict of them. Its containers scale apart from the class's, which are not held meanwhile. They
    have its class's `env`, `secrets`, `network`, `artifacts`, `timeout` and `retries`.

    Args:
        function: the method, where the mark stands without parentheses.
        cpu: cores of each of its containers, promised and at most. Default: 0.1 promised, 1 where others leave it.
        memory: host memory of each: "2GiB", or MiB as an int. Default 2 GiB.
        max_containers: default 10.
        max_inputs: calls of one container at a time. Default 1.

    Raises:
        OptionError: for a value out of bounds, or an unknown option.
    """
    given = {"cpu": cpu, "memory": memory, "max_containers": max_containers, "max_inputs": max_inputs}
    return _call_hook(HookKind.PREPROCESS, function, given, unknown)


@overload
def postprocess(function: F, /) -> F: ...
@overload
def postprocess(
    *, cpu: float = ..., memory: str | int = ..., max_containers: int = ..., max_inputs: int = ...
) -> Callable[[F], F]: ...
def postprocess(
    function: Any = None,
    /,
    *,
    cpu: float | None = None,
    memory: str | int | None = None,
    max_containers: int | None = None,
    max_inputs: int | None = None,
    **unknown: Any,
) -> Any:
    """Mark the method that gets what a called one returns, and returns what callers get, as `preprocess`.

    It takes one parameter. A class with it has no generators.
    """
    given = {"cpu": cpu, "memory": memory, "max_containers": max_containers, "max_inputs": max_inputs}
    return _call_hook(HookKind.POSTPROCESS, function, given, unknown)


def _call_hook(kind: HookKind, function: Any, options: dict[str, Any], unknown: dict[str, Any]) -> Any:
    _refuse_unknown(kind.value, unknown, frozenset(options), {})
    given = {name: value for name, value in options.items() if value is not None}
    try:
        fields = spec_fields({name: value for name, value in given.items() if name != "max_inputs"})
    except OptionError as error:
        raise OptionError(f"@{kind}: {error.detail}", field=error.more.get("field", "")) from None
    if "max_inputs" in given:
        fields["max_inputs"] = _checked_inputs(kind.value, given["max_inputs"])
    markers = {kind.value: HookOptions(**fields)}
    if function is None:
        return lambda marked: _mark(marked, **markers)
    return _mark(function, **markers)


# A type checker sees methods as what they are from outside: it does not follow what `gpu_function` makes of a class.
@overload
def method(function: Callable[Concatenate[Any, P], R], /) -> Function[P, R]: ...
@overload
def method(
    *, schedule: Cron | Period | None = None
) -> Callable[[Callable[Concatenate[Any, P], R]], Function[P, R]]: ...
def method(function: Any = None, /, *, schedule: Any = None, **unknown: Any) -> Any:
    """Mark a method that calls may name; with a `schedule` it also runs by itself, without arguments.

    Raises:
        OptionError: for another option, or a schedule that is neither Cron nor Period.
    """
    if "is_generator" in unknown:
        raise OptionError("@method: is_generator= is not needed: a method that yields is a generator.")
    if schedule is None:
        return _hook("method", function, unknown)
    schedule_of(schedule, "")
    return _hook("method", function, unknown, schedule=schedule)


def batched(
    *,
    max_batch_size: int | None = None,
    wait_ms: float = 10.0,
    cost: Any = None,
    max_batch_cost: float | None = None,
    **unknown: Any,
) -> Callable[[Callable[..., Any]], Function[..., Any]]:
    """Collect calls into batches: the function gets a list per parameter, and returns a list of the same length.

    To fail one item, return an exception in its place: `[ValueError("empty") if not text else ... for text in texts]`.
    If the function raises, all items of the batch fail; with `idempotent=True` each is run again, once, by itself.

    Args:
        max_batch_size: 1 to 1000 items.
        wait_ms: the longest that a first item waits for others; less with an SLO.
        cost: of an item: `len` (of the only parameter), a parameter's name (its value if it is a number, else its
            length), "len:PARAM" or "value:PARAM". Default: 1.
        max_batch_cost: the highest cost of a batch of several items.

    Raises:
        OptionError: for a value out of bounds, or an unknown option.
    """
    known = frozenset({"max_batch_size", "wait_ms", "cost", "max_batch_cost"})
    _refuse_unknown("batched", unknown, known, BATCHED_HINTS)
    if not _is_int(max_batch_size) or not 1 <= max_batch_size <= MAX_BATCH_SIZE:
        raise OptionError(f"@batched: max_batch_size must be 1 to {MAX_BATCH_SIZE}, not {max_batch_size!r}.")
    if not _is_number(wait_ms) or not 0 <= wait_ms <= MAX_WAIT_MS:
        raise OptionError(f"@batched: wait_ms must be 0 to {MAX_WAIT_MS}, not {wait_ms!r}.")
    if max_batch_cost is not None and (not _is_number(max_batch_cost) or max_batch_cost <= 0):
        raise OptionError(f"@batched: max_batch_cost must be more than 0, not {max_batch_cost!r}.")
    options = BatchOptions(
        max_batch_size=max_batch_size,
        wait_ms=float(wait_ms),
        cost=_cost(cost),
        max_batch_cost=None if max_batch_cost is None else float(max_batch_cost),
    )
    return lambda function: cast("Function[..., Any]", _mark(function, batched=options))


def concurrent(*, max_inputs: int | None = None, **unknown: Any) -> Callable[[C], C]:
    """Run up to `max_inputs` calls (1 to 10000) at a time in one container: of a class, or of an async function.

    Raises:
        OptionError: for a value out of bounds, or an unknown option.
    """
    _refuse_unknown("concurrent", unknown, frozenset({"max_inputs"}), CONCURRENT_HINTS)
    checked = _checked_inputs("concurrent", max_inputs)
    return lambda thing: _mark(thing, max_inputs=checked)


def _checked_inputs(decorator: str, max_inputs: Any) -> int:
    if not _is_int(max_inputs) or not 1 <= max_inputs <= MAX_INPUTS:
        raise OptionError(f"@{decorator}: max_inputs must be 1 to {MAX_INPUTS}, not {max_inputs!r}.")
    return max_inputs


def _cost(cost: Any) -> str | None:
    if cost is None or isinstance(cost, str):
        return cost
    if cost is len:
        return "len"
    raise OptionError(
        "@batched: cost= must be len or a parameter's name: the platform forms batches before your code sees them, "
        "and runs no code of yours outside your container."
    )


def _is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
