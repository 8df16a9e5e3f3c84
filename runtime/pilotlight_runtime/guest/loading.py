"""From a spec to a target: the module is imported, the class made, and the hooks run."""

from __future__ import annotations

import gc
import importlib
import inspect
import math
import os
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any

from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.frames import Load, Loaded, LoadError, LoadStep
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of, unwrap
from pilotlight_runtime.guest.proxy_forwarder import proxy_variables
from pilotlight_runtime.guest.remote_errors import remote_error
from pilotlight_runtime.guest.secret_places import place_secrets

THREADS = "OMP_NUM_THREADS"
Hook = Callable[[], Any]
RunHook = Callable[[Awaitable[Any]], Any]


class NotLoaded(Exception):
    """The function cannot be loaded; a LoadError has been sent."""


def prepare(load: Load) -> None:
    """Set the process's environment, secrets, threads and module path by the spec."""
    os.environ.update(load.spec.env)
    os.environ.update(load.env)
    if load.network:
        os.environ.update(proxy_variables(load.network, load.spec.env))
    place_secrets(load.secrets)
    if THREADS not in load.spec.env and THREADS not in load.env:
        set_threads(math.ceil(load.spec.most_cpu_millis / 1000))
    sys.path.insert(0, load.root)
    importlib.invalidate_caches()  # the files came after this interpreter had read the folder


def set_threads(cores: int) -> None:
    """Limit the threads of numeric libraries, imported already or later."""
    os.environ[THREADS] = str(cores)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(cores)


@contextmanager
def step(channel: Channel, name: str) -> Iterator[None]:
    """Time one step and send it; an exception of the tenant's code becomes a LoadError and NotLoaded."""
    began = time.perf_counter()
    try:
        yield
    except BaseException as error:
        channel.send(LoadError(step=name, error=remote_error(error)))
        raise NotLoaded(f"{name} failed") from error
    channel.send(LoadStep(name=name, ms=(time.perf_counter() - began) * 1000))


def open_function(spec: FunctionSpec, nested: GuestNested) -> Any:
    """The tenant's function or class, whose code can call others from now on. Raises as `import_function`."""
    nested.open("")
    decorated, thing = import_function(spec)
    ref = getattr(decorated, "ref", None)
    nested.own_app = str(getattr(ref, "app", ""))
    return thing


def import_function(spec: FunctionSpec) -> tuple[Any, Any]:
    """What the module has by the names in the spec, and the tenant's function or class in it.

    Raises:
        ImportError, AttributeError, TypeError, and whatever the module raises.
    """
    module = importlib.import_module(spec.module)
    decorated = reduce(getattr, spec.qualname.split("."), module)
    thing = unwrap(decorated)
    if spec.is_class is not isinstance(thing, type):
        expected = "class" if spec.is_class else "function"
        raise TypeError(f"{spec.module}.{spec.qualname} is a {type(thing).__name__}: it was deployed as a {expected}")
    return decorated, thing


def load_blocking(load: Load, channel: Channel, nested: GuestNested, wait: RunHook) -> GuestTarget:
    """Load with plain hooks; `wait` runs the asynchronous ones to their end. Raises NotLoaded."""
    with step(channel, "import"):
        prepare(load)
        thing = open_function(load.spec, nested)
    with step(channel, "enter"):
        target = target_of(load.spec, thing)
        for hook in target.enter:
            call_hook(hook, wait)
    if target.check is not None:
        with step(channel, "check"):
            verify(call_hook(target.check, wait))
    return target


async def load_async(load: Load, channel: Channel, nested: GuestNested) -> GuestTarget:
    """Load within the event loop of the calls, so that what hooks open belongs to it. Raises NotLoaded."""
    with step(channel, "import"):
        prepare(load)
        thing = open_function(load.spec, nested)
    with step(channel, "enter"):
        target = target_of(load.spec, thing)
        for hook in target.enter:
            await await_hook(hook)
    if target.check is not None:
        with step(channel, "check"):
            verify(await await_hook(target.check))
    return target


def call_hook(hook: Hook, wait: RunHook) -> Any:
    answer = hook()
    return wait(answer) if inspect.isawaitable(answer) else answer


async def await_hook(hook: Hook) -> Any:
    answer = hook()
    return await answer if inspect.isawaitable(answer) else answer


def verify(healthy: Any) -> None:
    if healthy is False:
        raise RuntimeError("__check__ answered False")


def send_loaded(channel: Channel, target: GuestTarget) -> None:
    """Send Loaded, and freeze what has been loaded for the garbage collector."""
    gc.freeze()
    channel.send(Loaded(parks=target.parks))


@contextmanager
def reported() -> Iterator[None]:
    """Log what an exit hook raises, so that the next one runs."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()
