"""The FunctionSpec of a decorated function or class."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import UNSET

from pilotlight.definitions.artifact_options import artifacts_of
from pilotlight.definitions.call_hooks import called_spec, hook_callees, pipeline_of, with_hooks
from pilotlight.definitions.decorated import markers_of
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.options import function_name, spec_fields
from pilotlight.definitions.rehearsal_options import rehearsal_of
from pilotlight.definitions.schedules import schedule_of
from pilotlight.definitions.signature import Callee, named_spec
from pilotlight.definitions.weights_options import weights_of
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.running_code import nested_port
from pilotlight_core.model.secrets.secret_uses import check_secrets
from pilotlight_core.model.spec import FunctionSpec, Schedule
from pilotlight_core.model.versions.spec_checks import check_spec


def build_spec(target: Any, options: Mapping[str, Any]) -> tuple[FunctionSpec, tuple[Callee, ...]]:
    """Return the FunctionSpec of a function or class, and its Callees.

    In a container, where its deploy has described and checked it, it has no schemas and is not checked again.

    Raises:
        OptionError: naming the function, its file and line.
    """
    try:
        return _build(target, options)
    except BadInput as error:
        where = _where_is(target)
        name = getattr(target, "__qualname__", repr(target))
        raise OptionError(f"{name} ({where}): {error.detail}", field=error.more.get("field", "")) from error


def _build(target: Any, options: Mapping[str, Any]) -> tuple[FunctionSpec, tuple[Callee, ...]]:
    is_class = isinstance(target, type)
    if not is_class and not inspect.isfunction(target):
        raise OptionError("@gpu_function decorates a function or a class.")
    is_deployed = nested_port() is not None
    fields = spec_fields(options)
    artifacts_of(options)  # refused here, with the function's place
    weights_of(options)
    members = _members(target) if is_class else {}
    hooks = hook_callees(members)
    callees = with_hooks(_methods(target, members), hooks) if is_class else (_function(target),)
    schedules = _schedules(target, options, callees)
    park, unpark = _park_hooks(members)
    checks = _hooks(members, "check")
    has_own_check = is_class and hasattr(target, "__check__")
    spec = FunctionSpec(
        name=function_name(options, target.__name__),
        module=module_name(target),
        qualname=target.__qualname__,
        is_class=is_class,
        methods=tuple(named_spec(callee) if is_deployed else called_spec(callee) for callee in callees),
        enter=_hooks(members, "enter"),
        exit=_hooks(members, "exit"),
        drain=_hooks(members, "drain") or UNSET,
        max_inputs=markers_of(target).max_inputs or 1,
        schedules=schedules or UNSET,
        pipeline=pipeline_of(callees, hooks, members) or UNSET,
        park=park or UNSET,
        unpark=unpark or UNSET,
        rehearsal=rehearsal_of(options, callees, checks, has_own_check=has_own_check),
        **fields,
    )
    if is_deployed:
        return spec, callees
    check_spec(spec)
    check_secrets(spec)
    if schedules:
        # Late, as the schedules themselves.
        from pilotlight_core.model.schedules.schedule_checks import check_schedules

        check_schedules(spec)
    return spec, callees


def _schedules(target: Any, options: Mapping[str, Any], callees: tuple[Callee, ...]) -> tuple[Schedule, ...]:
    """Return the schedule of a function, or those of a class's methods."""
    if "schedule" not in options or options["schedule"] is None:
        marked = ((callee.name, markers_of(callee.function).schedule) for callee in callees)
        return tuple(schedule_of(value, name) for name, value in marked if value is not None)
    if isinstance(target, type):
        raise OptionError("schedule= of a class: say it at the method, @method(schedule=…).", field="schedule")
    return (schedule_of(options["schedule"], ""),)


def module_name(target: Any) -> str:
    """Return the module that a container imports for `target`; `__main__` is named after its file."""
    if target.__module__ != "__main__":
        return str(target.__module__)
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return _base(file).removesuffix(".py") if file else "__main__"


def _where_is(target: Any) -> str:
    """Return `file.py:12`, or else the module."""
    code = getattr(inspect.unwrap(target) if callable(target) else target, "__code__", None)
    if code is None and isinstance(target, type):
        members = [getattr(member, "__code__", None) for member in vars(target).values()]
        code = next((member for member in members if member is not None), None)
    if code is not None:
        return f"{_base(code.co_filename)}:{code.co_firstlineno}"
    return str(getattr(target, "__module__", "?"))


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


def _function(target: Callable[..., Any]) -> Callee:
    owner = target.__qualname__.rpartition(".")[0]
    if owner and not owner.endswith("<locals>"):
        raise OptionError("it is a method: decorate the class with @gpu_function, and this with @method().")
    mark = markers_of(target)
    if any((mark.enter, mark.exit, mark.check, mark.park, mark.unpark, mark.drain, mark.method)):
        raise OptionError(
            "@enter(), @exit(), @check(), @park(), @unpark(), @drain() and @method() mark methods of a class; a "
            "function needs none."
        )
    if mark.preprocess is not None or mark.postprocess is not None:
        raise OptionError("@preprocess() and @postprocess() mark methods of a class: make one of this function.")
    return Callee(function=target, name="", attribute=target.__qualname__, batched=mark.batched)


def _methods(cls: type, members: Mapping[str, Any]) -> tuple[Callee, ...]:
    required = [p.name for p in _init_parameters(cls) if p.default is p.empty and p.kind not in _OPEN_ENDED]
    if required:
        raise OptionError(f"__init__ needs {', '.join(required)}: classes with parameters come later; use @enter().")
    found = tuple(
        Callee(function=member, name=name, attribute=name, is_method=True, batched=markers_of(member).batched)
        for name, member in members.items()
        if inspect.isfunction(member) and markers_of(member).is_callable
    )
    if not found:
        raise OptionError("a class needs at least one method marked @method() or @batched(…): nothing could be called.")
    return found


_OPEN_ENDED = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _init_parameters(cls: type) -> list[inspect.Parameter]:
    constructor = inspect.getattr_static(cls, "__init__")
    return list(inspect.signature(constructor).parameters.values())[1:] if inspect.isfunction(constructor) else []


def _members(cls: type) -> dict[str, Any]:
    """Return the attributes of a class as defined, base classes first, each once."""
    return {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}


def _park_hooks(members: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    park, unpark = _hooks(members, "park"), _hooks(members, "unpark")
    if bool(park) is not bool(unpark):
        there, missing = ("park", "unpark") if park else ("unpark", "park")
        raise OptionError(f"@{there}() needs @{missing}() beside it: what leaves the device has to come back.")
    return park, unpark


def _hooks(members: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    marked = {name: markers_of(member) for name, member in members.items()}
    found = [name for name, markers in marked.items() if getattr(markers, kind)]
    for name in found:
        member = members[name]
        if inspect.isgeneratorfunction(member) or inspect.isasyncgenfunction(member):
            raise OptionError(f"{name} is an @{kind}() hook and yields: split it into an @enter() and an @exit().")
        if len(inspect.signature(member).parameters) != 1:
            raise OptionError(f"{name} is an @{kind}() hook: it takes nothing but self.")
    return tuple(name for name in found if kind != "enter" or not marked[name].enter_for)
