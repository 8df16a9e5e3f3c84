"""`gpu_function`, the one decorator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload

from pilotlight.app import App, app_named
from pilotlight.cls import Cls
from pilotlight.errors import OptionError
from pilotlight.function import Function
from pilotlight.marks import Wrapper
from pilotlight.options import Options
from pilotlight.specs import build_spec

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Decorator(Protocol):
    """What `gpu_function(...)` with options returns."""

    @overload
    def __call__(self, target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, target: Callable[P, R], /) -> Function[P, R]: ...


@overload
def gpu_function(target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]  # a class is callable too
@overload
def gpu_function(target: Callable[P, R], /) -> Function[P, R]: ...
@overload
def gpu_function(**options: Unpack[Options]) -> Decorator: ...
def gpu_function(target: Any = None, /, **options: Any) -> Any:
    """Turn a function, async function, generator or class into one that Pilotlight can run.

    Bare (`@gpu_function`) or with options (`@gpu_function(gpu="any", timeout=60)`); `@app.gpu_function` is the same
    with an app. Without one, the function belongs to the app named after its module (`a.b` becomes "a-b").

    Options:
        gpu: "H100", "H100:2", "any", or a list in order of preference ("cpu": a CPU slot). Default: a CPU slot.
        vram: GPU memory that it needs: "10GiB", or MiB as an int. Default: the whole device.
        cpu: Cores. Default 1.
        memory: Host memory: "2GiB", or MiB as an int. Default 2 GiB.
        timeout: Seconds one call may run. Default 300.
        startup_timeout: Seconds that loading may take. Default 600.
        retries: How often a call whose code raised is tried again. Default 0.
        min_containers: Kept warm even while nobody calls. Default 0.
        max_containers: Default 10.
        buffer_containers: Warm ones beyond those that work. Default 0.
        scaledown_window: Seconds a container waits for the next call before it goes. Default 60.
        env: Environment variables; nothing secret.
        secrets: Not supported yet.
        isolation: What else may use the device. Default "shared": other functions of yours.
        idempotent: Whether a started call may run again if its container dies. Default False.
        slo: The latencies to aim for.
        priority: Default "standard".
        model: What GPU memory is computed from, instead of `vram`: Model(parameters=8e9, layers=32, …).
        by_cost: Take whatever of the GPU list is cheapest for what it does, instead of the first. Default False.
        measured: What it was measured to do on GPUs and slices: for cost per throughput, and for the service level.
        weights: A name for the weights that it loads: nodes that have loaded them already go first.
        spread: Keep its containers apart; Spread(over="zone", most=2) is a hard limit.
        avoid: Functions of yours ("app.function") whose nodes it stays away from.
        spot: True: interruptible nodes only, False: none of them. Default: any.
        region: Default: any.
        zone: Default: any.
        neighbours: Whether other tenants may share its GPU, where they agree too. Default False.
        media: Whether it needs the GPU's video engines. Default False.
        name: What to call it; default: the function's or class's own name.
        app: The app it belongs to; default: one named after the module.

    Raises:
        OptionError: naming the option, what it expects, and the right word for another platform's.
    """
    return decorate(target, options)


def decorate(target: Any, options: Mapping[str, Any]) -> Any:
    """Apply the decorator, or return one that remembers the options."""
    if target is None:
        return lambda decorated: _wrap(decorated, options)
    return _wrap(target, options)


def _wrap(target: Any, options: Mapping[str, Any]) -> Function[..., Any] | Cls[Any]:
    if isinstance(target, Wrapper):
        raise OptionError(f"{target!r} is decorated with @gpu_function already.")
    if isinstance(target, str | App):
        raise OptionError("@gpu_function takes its options by keyword: app=, gpu=, …")
    spec, callees = build_spec(target, options)
    app = _app_of(options.get("app"), spec.module)
    wrapped: Function[..., Any] | Cls[Any]
    if spec.is_class:
        wrapped = Cls(target, app=app.name, spec=spec, callees=callees)
    else:
        wrapped = Function.of(target, app=app.name, spec=spec, callee=callees[0])
    app.register(wrapped)
    return wrapped


def _app_of(app: Any, module: str) -> App:
    if isinstance(app, App):
        return app
    if app is None:
        return app_named(module.replace(".", "-"))
    if isinstance(app, str):
        return app_named(app)
    raise OptionError(f"app={app!r}: expected a name or an App.", field="app")
