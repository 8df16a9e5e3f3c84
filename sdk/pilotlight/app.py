"""Apps: functions that are deployed together, atomically, under one name."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Never, ParamSpec, Protocol, TypeVar, Unpack, overload

import msgspec
from msgspec import UNSET

from pilotlight.cls import Cls
from pilotlight.definitions.artifact_options import artifacts_of
from pilotlight.definitions.decorated import Decorated
from pilotlight.definitions.engine_options import EngineOption, engine_of, engine_weights
from pilotlight.definitions.engines.engine_specs import build_engine_spec, check_stub
from pilotlight.definitions.errors import OptionError
from pilotlight.definitions.hints.migration_hints import explain_of_app
from pilotlight.definitions.options import KNOWN, Options, spec_fields
from pilotlight.definitions.requirement_options import requirements_of
from pilotlight.definitions.specs import build_spec, module_name
from pilotlight.definitions.weights_options import weights_of
from pilotlight.engine_model import EngineModel
from pilotlight.function import Function
from pilotlight.upstream_option import with_upstream
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import check_name, tags_fault
from pilotlight_core.model.spec import DEFAULT_BASE, FunctionSpec, tags_of

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Decorator(Protocol):
    """The result of `gpu_function(...)` with options."""

    @overload
    def __call__(self, target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R], /) -> Function[P, R]: ...


class App:
    """A named set of functions; `functions` maps their names, in order of decoration.

    They run in the base environment `base`, one of those that the platform's nodes have: an interpreter with packages.
    Every node has "default". `requirements` are packages that they find beside those, from the platform's index, such
    as `["duckdb==1.3.0"]`, or the path of a requirements.txt below the folder that is deployed; they are locked at the
    deploy. `tags` are those of all its functions, which may have others beside them, or instead.

    Raises:
        OptionError: if the name, that of the base environment, a requirement or a tag is not a legal one, or an option
            is none of an app's.
    """

    def __init__(
        self,
        name: str,
        *,
        base: str = DEFAULT_BASE,
        requirements: Sequence[str] | str = (),
        tags: Mapping[str, str] | None = None,
        **others: Never,
    ) -> None:
        for option in others:
            raise OptionError(f"App({name!r}): {explain_of_app(option, KNOWN)}", field=option)
        try:
            self.name = check_name(name, "app")
        except BadInput as error:
            raise OptionError(error.detail, field="app") from None
        try:
            self.base = check_name(base, "base")
        except BadInput as error:
            raise OptionError(error.detail, field="base") from None
        self.requirements = requirements_of(requirements)
        self.tags: dict[str, str] = spec_fields({"tags": tags or {}})["tags"]
        self.functions: dict[str, Function[..., Any] | Cls[Any]] = {}

    @overload
    def gpu_function(self, target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]  # a class comes first
    @overload
    def gpu_function(self, target: Callable[P, R], /) -> Function[P, R]: ...
    @overload
    def gpu_function(self, /, **options: Unpack[Options]) -> Decorator: ...
    def gpu_function(self, target: Any = None, /, **options: Any) -> Any:
        """Decorate as `pilotlight.gpu_function`, whose help lists the options, with this app."""
        return decorate(target, {**options, "app": options.get("app", self)})

    def engine(self, name: str, engine: EngineOption, /, **options: Unpack[Options]) -> EngineModel:
        """Have a language model served as the function `name`: no code is needed.

        The options are those of `gpu_function`, as far as they make sense without code; `adapters` are LoRA adapters.
        """
        given: dict[str, Any] = {**options, "engine": engine, "name": name, "app": options.get("app", self)}
        return _engine_model(given, sys._getframe(1).f_globals.get("__name__", "__main__"))  # noqa: SLF001

    def register(self, function: Function[..., Any] | Cls[Any]) -> None:
        """Make `function` part of the app. A function whose module is imported anew replaces itself.

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
        from pilotlight.definitions.hints.peer_names import APP_NAMES

        hint = f": {APP_NAMES[name]}" if name in APP_NAMES else ""
        raise AttributeError(f"an App has no attribute {name!r}{hint}")

    def __repr__(self) -> str:
        return f"App({self.name!r})"


def _home(function: Function[..., Any] | Cls[Any]) -> tuple[str, str]:
    return function.source_module or function.spec.module, function.spec.qualname


def decorate(target: Any, options: Mapping[str, Any]) -> Any:
    """Decorate as `gpu_function`; without a target, return a Decorator."""
    if target is None:
        return lambda decorated: _wrap(decorated, options)
    return _wrap(target, options)


def _wrap(target: Any, options: Mapping[str, Any]) -> Function[..., Any] | Cls[Any]:
    if isinstance(target, Decorated):
        raise OptionError(f"{target!r} is decorated with @gpu_function already.")
    if isinstance(target, str | App):
        raise OptionError("@gpu_function takes its options by keyword: app=, gpu=, …")
    options = with_upstream(target, options)
    if engine_of(options) is not None:
        check_stub(target)
        named = {"name": target.__name__, **options}
        return _engine_model(named, module_name(target), target.__doc__ or "")
    spec, callees = build_spec(target, options)
    app = _app_of(options.get("app"), spec.module)
    spec = _with_tags(spec, app)
    wrapped: Function[..., Any] | Cls[Any]
    if spec.is_class:
        wrapped = Cls(target, app=app.name, spec=spec, callees=callees)
    else:
        wrapped = Function.of(target, app=app.name, spec=spec, callee=callees[0])
    wrapped.artifacts = artifacts_of(options)
    wrapped.weights = weights_of(options)
    app.register(wrapped)
    return wrapped


def _engine_model(options: Mapping[str, Any], source: str, doc: str = "") -> EngineModel:
    """The engine function that the module `source` defines."""
    spec = build_engine_spec(options, str(options["name"]))
    app = _app_of(options.get("app"), source)
    model = EngineModel(app=app.name, spec=_with_tags(spec, app), source=source, doc=doc)
    model.artifacts = artifacts_of(options)
    model.weights = engine_weights(options)
    app.register(model)
    return model


def _with_tags(spec: FunctionSpec, app: App) -> FunctionSpec:
    """The specification with the app's tags too, of which its own come first."""
    tags = app.tags | tags_of(spec)
    if why := tags_fault(tags):
        raise OptionError(f"{spec.name}: tags= of it and of the app {app.name!r} together: {why}.", field="tags")
    return msgspec.structs.replace(spec, tags=tags or UNSET)


def _app_of(app: Any, module: str) -> App:
    if isinstance(app, App):
        return app
    if app is None:
        return app_named(module.replace(".", "-"))
    if isinstance(app, str):
        return app_named(app)
    raise OptionError(f"app={app!r}: expected a name or an App.", field="app")


Registered = list[tuple[App, Function[..., Any] | Cls[Any]]]
_by_name: dict[str, App] = {}
_collected: Registered | None = None


def app_named(name: str) -> App:
    if name not in _by_name:
        _by_name[name] = App(name)
    return _by_name[name]


@contextmanager
def collecting() -> Iterator[Registered]:
    """Yield a list of the functions registered in the block, where named apps start empty."""
    global _by_name, _collected
    outer = _by_name, _collected
    _by_name, _collected = {}, []
    try:
        yield _collected
    finally:
        _by_name, _collected = outer
