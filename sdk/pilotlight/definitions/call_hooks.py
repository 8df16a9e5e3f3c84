"""The pipeline of a class, from its methods marked `@preprocess()` and `@postprocess()`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pilotlight.definitions.decorated import HookOptions, Markers, markers_of
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.signature import Callee, method_spec
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, Pipeline
from pilotlight_core.model.spec import MethodSpec, Mode

NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def hook_callees(members: Mapping[str, Any]) -> dict[HookKind, Callee]:
    """Return the hooks among the members of a class, each as a Callee without a method's name.

    Raises:
        OptionError: if there are two of a kind, or one cannot be a hook.
    """
    found: dict[HookKind, Callee] = {}
    for name, member in members.items():
        markers = markers_of(member)
        kinds = [kind for kind in HookKind if _options(markers, kind) is not None]
        if kinds and (len(kinds) > 1 or markers.is_callable or markers.enter):
            raise OptionError(f"{name} is an @{kinds[0]}() hook, and has another mark: make two methods of it.")
        for kind in kinds:
            if kind in found:
                raise OptionError(f"{found[kind].attribute} and {name} are both @{kind}() hooks: a class has one.")
            found[kind] = Callee(function=member, name="", attribute=name, is_method=True)
    for kind, callee in found.items():
        _check_hook(kind, callee)
    return found


def _check_hook(kind: HookKind, callee: Callee) -> None:
    if not inspect.isfunction(callee.function):
        raise OptionError(f"{callee.attribute} is an @{kind}() hook: it must be a plain method.")
    if callee.mode is Mode.GENERATOR:
        raise OptionError(f"{callee.attribute} is an @{kind}() hook and yields: it returns one value.")
    if kind is HookKind.POSTPROCESS:
        parameters = callee.parameters()
        if len(parameters) != 1 or parameters[0].kind not in NAMED:
            raise OptionError(f"{callee.attribute} is a @postprocess() hook: it takes self and the method's answer.")


def with_hooks(callees: tuple[Callee, ...], hooks: Mapping[HookKind, Callee]) -> tuple[Callee, ...]:
    """Return the methods of a class with the hooks that their calls run through.

    Raises:
        OptionError: if a method cannot get what a hook returns, or one that yields has a postprocess hook.
    """
    if not hooks:
        return callees
    for callee in callees:
        if HookKind.POSTPROCESS in hooks and callee.mode is Mode.GENERATOR:
            raise OptionError(
                f"{callee.label} yields, and {hooks[HookKind.POSTPROCESS].attribute} is a @postprocess() hook, which "
                "gets one answer: let the method yield what callers get, or make another class of it."
            )
        if HookKind.PREPROCESS in hooks and not callee.parameters():
            raise OptionError(f"{callee.label} takes nothing, so it cannot get what a @preprocess() hook returns.")
    first, last = hooks.get(HookKind.PREPROCESS), hooks.get(HookKind.POSTPROCESS)
    return tuple(msgspec.structs.replace(callee, first=first, last=last) for callee in callees)


def called_spec(callee: Callee) -> MethodSpec:
    """Return the MethodSpec of a method, whose schemas are those of its first and its last hook.

    Raises:
        OptionError: as `method_spec`.
    """
    spec = method_spec(callee)
    if callee.first is not None:
        first = method_spec(msgspec.structs.replace(callee.first, name=callee.name)).input_schema
        described = {key: value for key in ("description",) if (value := spec.input_schema.get(key))}
        spec = msgspec.structs.replace(spec, input_schema=first | described)
    if callee.last is not None:
        spec = msgspec.structs.replace(spec, output_schema=method_spec(callee.last).output_schema)
    return spec


def pipeline_of(
    callees: tuple[Callee, ...], hooks: Mapping[HookKind, Callee], members: Mapping[str, Any]
) -> Pipeline | None:
    """Return the pipeline of a class; None: it has no hooks.

    Raises:
        OptionError: if an `@enter(stage=…)` names a hook that the class does not have.
    """
    enters: dict[str, list[str]] = {}
    for name, member in members.items():
        if stage := markers_of(member).enter_for:
            if HookKind(stage) not in hooks:
                raise OptionError(f'{name}: @enter(stage="{stage}") needs an @{stage}() hook.', field="stage")
            enters.setdefault(stage, []).append(name)
    if not hooks:
        return None
    found = {kind: _call_hook(kind, callee, tuple(enters.get(kind.value, ()))) for kind, callee in hooks.items()}
    has_first = HookKind.PREPROCESS in hooks
    return Pipeline(
        preprocess=found.get(HookKind.PREPROCESS),
        postprocess=found.get(HookKind.POSTPROCESS),
        takes={callee.name: argument_of(callee) for callee in callees} if has_first else {},
    )


def argument_of(callee: Callee) -> str:
    """Return the name of a method's only parameter; "" if it takes several, or any."""
    parameters = callee.parameters()
    only = parameters[0] if len(parameters) == 1 else None
    return only.name if only is not None and only.kind in NAMED else ""


def _call_hook(kind: HookKind, callee: Callee, enter: tuple[str, ...]) -> CallHook:
    options = _options(markers_of(callee.function), kind) or HookOptions()
    given = {name: value for name, value in msgspec.structs.asdict(options).items() if value is not None}
    takes = callee.parameters()[0].name if kind is HookKind.POSTPROCESS else ""
    return CallHook(attribute=callee.attribute, is_async=callee.is_async, enter=enter, takes=takes, **given)


def _options(markers: Markers, kind: HookKind) -> HookOptions | None:
    return markers.preprocess if kind is HookKind.PREPROCESS else markers.postprocess


Step = Callable[..., Any]


def call_through(
    callee: Callee, first: Step | None, method: Step, last: Step | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Run a call through its hooks in this process, as the platform does in three containers.

    Returns a value or a generator; a coroutine if any of them is asynchronous.
    """
    steps: list[Step] = []
    if first is not None:
        steps += [first, lambda value: method(**arguments(callee, value))]
    else:
        steps.append(method)
    if last is not None:
        steps.append(last)
    answer = steps[0](*args, **kwargs)
    for number, step in enumerate(steps[1:], 1):
        if inspect.isawaitable(answer):
            return _await_rest(answer, steps[number:])
        answer = step(answer)
    return answer


async def _await_rest(pending: Any, steps: list[Step]) -> Any:
    value = await pending
    for step in steps:
        value = step(value)
        if inspect.isawaitable(value):
            value = await value
    return value


def arguments(callee: Callee, value: Any) -> dict[str, Any]:
    """Return the named arguments of a method for what a preprocess hook has returned.

    Raises:
        TypeError: the method takes several, and that is no dict.
    """
    if name := argument_of(callee):
        return {name: value}
    if not isinstance(value, dict):
        raise TypeError(
            f"{callee.label} takes several arguments, and its @preprocess() hook returned {type(value).__name__}: "
            "return a dict of them."
        )
    return value
