"""An app: functions that are deployed together, atomically, under one name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack, overload

from pilotlight.errors import OptionError
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name

if TYPE_CHECKING:
    from pilotlight.cls import Cls
    from pilotlight.decorate import Decorator
    from pilotlight.function import Function
    from pilotlight.options import Options

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_DIALECT = {"function": "@app.gpu_function", "cls": "@app.gpu_function", "server": "@app.gpu_function"}


class App:
    """A named set of functions. `functions` maps the name of each to its wrapper, in order of decoration."""

    def __init__(self, name: str) -> None:
        try:
            self.name = check_name(name, "app")
        except BadInput as error:
            raise OptionError(error.detail, field="app") from None
        self.functions: dict[str, Function[..., Any] | Cls[Any]] = {}

    @overload
    def gpu_function(self, target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]  # a class comes first
    @overload
    def gpu_function(self, target: Callable[P, R], /) -> Function[P, R]: ...
    @overload
    def gpu_function(self, /, **options: Unpack[Options]) -> Decorator: ...
    def gpu_function(self, target: Any = None, /, **options: Any) -> Any:
        """As `pilotlight.gpu_function`, whose help lists the options, with this app."""
        from pilotlight.decorate import decorate

        return decorate(target, {**options, "app": options.get("app", self)})

    def register(self, function: Function[..., Any] | Cls[Any]) -> None:
        """Make `function` part of the app; the same function again (a module that is imported anew) replaces it.

        Raises:
            OptionError: if another function has its name.
        """
        known = self.functions.get(function.name)
        if known is not None and _home(known) != _home(function):
            raise OptionError(
                f"the app {self.name!r} has two functions called {function.name!r}, in {'.'.join(_home(known))} and "
                f"{'.'.join(_home(function))}: give one of them name=.",
                field="name",
            )
        self.functions[function.name] = function
        if _collected is not None:
            _collected.append((self, function))

    def __getattr__(self, name: str) -> Any:
        hint = f"; here it is {_DIALECT[name]}" if name in _DIALECT else ""
        raise AttributeError(f"an App has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        return f"App({self.name!r})"


def _home(function: Function[..., Any] | Cls[Any]) -> tuple[str, str]:
    return function.spec.module, function.spec.qualname


Registered = list[tuple[App, "Function[..., Any] | Cls[Any]"]]
_by_name: dict[str, App] = {}
_collected: Registered | None = None


def app_named(name: str) -> App:
    """The app that `app="name"` and functions without an app belong to: one for each name in this process."""
    if name not in _by_name:
        _by_name[name] = App(name)
    return _by_name[name]


@contextmanager
def collecting() -> Iterator[Registered]:
    """A list of all that is registered during the block, with named apps that start empty: a deploy's own import."""
    global _by_name, _collected
    outer = _by_name, _collected
    _by_name, _collected = {}, []
    try:
        yield _collected
    finally:
        _by_name, _collected = outer
