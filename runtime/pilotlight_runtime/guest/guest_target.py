"""What a guest serves: a function or an instance, and how each of its methods is called."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Mode
from pilotlight_runtime.guest.basics.arguments import Parameters


class TargetMethod(msgspec.Struct, frozen=True, kw_only=True):
    function: Callable[..., Any]
    parameters: Parameters
    streams: bool
    is_async: bool
    """A coroutine function, or an asynchronous generator function."""


class GuestTarget(msgspec.Struct, frozen=True, kw_only=True):
    """The methods by `Invoke.method`, and the hooks."""

    methods: dict[str, TargetMethod]
    enter: tuple[Callable[[], Any], ...] = ()
    checks: tuple[Callable[[], Any], ...] = ()
    """Methods marked `@check()`, and `__check__`: each raises or returns False when an instance is unfit."""
    exit: tuple[Callable[[], Any], ...] = ()
    drain: tuple[Callable[[], Any], ...] = ()
    """Run when the node is taken away."""
    park: tuple[Callable[[], Any], ...] = ()
    """They leave the device, while no call runs."""
    unpark: tuple[Callable[[], Any], ...] = ()

    @property
    def parks(self) -> bool:
        return bool(self.park or self.unpark)


def unwrap(thing: Any) -> Any:
    """The tenant's own function or class within the SDK's decorator.

    An SDK object carries it as `__wrapped__`; one level only, since a tenant's own functools.wraps uses the same name.
    """
    if isinstance(thing, types.FunctionType | type) or not hasattr(thing, "__wrapped__"):
        return thing
    return thing.__wrapped__


def target_of(spec: FunctionSpec, thing: Any) -> GuestTarget:
    """The target for `thing`, the tenant's function or class, which is instantiated.

    Raises:
        AttributeError: if the class lacks something that the spec names. And whatever its constructor raises.
    """
    owner: Any = thing
    if spec.is_class:
        owner = thing() if spec.engine is UNSET else thing(spec.engine)
    methods = {
        method.name: _method(bound(owner, method.attribute) if spec.is_class else thing, method)
        for method in spec.methods
    }
    if len(spec.methods) == 1:
        methods[""] = methods[spec.methods[0].name]
    return GuestTarget(
        methods=methods,
        enter=tuple(bound(owner, name) for name in spec.enter),
        checks=tuple(bound(owner, name) for name in _checks(spec, owner)),
        exit=tuple(bound(owner, name) for name in spec.exit),
        park=tuple(bound(owner, name) for name in spec.park or ()),
        unpark=tuple(bound(owner, name) for name in spec.unpark or ()),
        drain=tuple(bound(owner, name) for name in spec.drain or ()),
    )


def _checks(spec: FunctionSpec, owner: Any) -> tuple[str, ...]:
    if spec.hook is not UNSET:
        return ()  # they are of the method, for which nothing is loaded where a hook runs
    marked = () if spec.rehearsal is UNSET else spec.rehearsal.checks
    return (*marked, "__check__") if spec.is_class and hasattr(owner, "__check__") else marked


def bound(owner: Any, name: str) -> Any:
    """`owner.name` without the SDK's decorator, bound to `owner`; raises AttributeError."""
    raw = inspect.getattr_static(owner, name)
    plain = unwrap(raw)
    if plain is raw or isinstance(raw, staticmethod | classmethod):
        return getattr(owner, name)
    return types.MethodType(plain, owner)


def _method(function: Callable[..., Any], spec: MethodSpec) -> TargetMethod:
    return TargetMethod(
        function=function,
        parameters=Parameters(function, columns=spec.batching is not None),
        streams=spec.mode is Mode.GENERATOR,
        is_async=spec.is_async,
    )
