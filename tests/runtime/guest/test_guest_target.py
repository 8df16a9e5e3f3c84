"""What a spec's names stand for in a tenant's module."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.pipelines.pipeline import HookKind
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_runtime.guest.guest_target import bound, target_of, unwrap
from tests.runtime.guest.apps import plain, shop


def logged(function: Any) -> Any:
    """A tenant's own decorator."""

    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return f"logged {function(*args, **named)}"

    return wrapper


class Wrapped:
    """A descriptor of which we only know that it carries the method."""

    def __init__(self, function: Any) -> None:
        self.__wrapped__ = function


class Kinds:
    """One of each kind of attribute."""

    @Wrapped
    def wrapped(self) -> Any:
        return type(self).__name__

    @staticmethod
    def static() -> str:
        return "static"

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    @logged
    def plain(self) -> str:
        return "plain"


def test_sdk_objects_are_unwrapped_and_own_decorators_are_not() -> None:
    """One level only: what a tenant wrapped stays wrapped."""
    assert unwrap(shop.Shop).__name__ == "Shop"
    assert isinstance(unwrap(shop.Shop), type)
    assert unwrap(plain.nothing)() is None
    assert unwrap(logged(lambda: 1))() == "logged 1"


@pytest.mark.parametrize(
    ("name", "answer"), [("wrapped", "Kinds"), ("static", "static"), ("of_class", "Kinds"), ("plain", "logged plain")]
)
def test_attributes_are_bound(name: str, answer: str) -> None:
    """Whatever kind of attribute it is, it is called without self."""
    assert bound(Kinds(), name)() == answer


def test_an_only_method_needs_no_name() -> None:
    """Where there is one method, the empty name is it too."""
    spec = FunctionSpec(
        name="k", module="m", qualname="Kinds", is_class=True, methods=(MethodSpec(name="plain", attribute="plain"),)
    )
    target = target_of(spec, Kinds)

    assert target.methods[""] is target.methods["plain"]
    assert target.methods[""].function() == "logged plain"


def test_a_missing_attribute_is_named() -> None:
    """The spec says what the class does not have."""
    spec = FunctionSpec(
        name="k", module="m", qualname="Kinds", is_class=True, methods=(MethodSpec(name="gone", attribute="gone"),)
    )
    with pytest.raises(AttributeError, match="gone"):
        target_of(spec, Kinds)


def test_where_a_hook_runs_its_class_is_not_checked() -> None:
    """What the check needs is loaded where the method runs alone."""

    class Words:
        def read(self, text: str) -> str:
            return text

        def __check__(self) -> bool:
            return False

    read = MethodSpec(name="add", attribute="read")
    spec = FunctionSpec(name="Words", module="m", qualname="Words", is_class=True, methods=(read,))
    assert len(target_of(spec, Words).checks) == 1
    companion = msgspec.structs.replace(spec, name="Words~pre", hook=HookKind.PREPROCESS)
    assert target_of(companion, Words).checks == ()
    assert target_of(companion, Words).methods["add"].function("x") == "x"
