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
from pathlib import Path
from typing import Any

from pilotlight_core.model.messages.engine_report import open_engine_reports
from pilotlight_core.model.messages.running_code import IN_HOOK, RUNNING_CALL
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_runtime.guest.agent_channel import AgentGone, Channel
from pilotlight_runtime.guest.basics.proxy_forwarder import proxy_variables
from pilotlight_runtime.guest.basics.remote_errors import remote_error
from pilotlight_runtime.guest.basics.secret_places import place_secrets
from pilotlight_runtime.guest.frames import (
    COMPILE_PIECE,
    CompilePiece,
    EngineReportOut,
    Load,
    Loaded,
    LoadError,
    LoadStep,
)
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.guest_target import GuestTarget, target_of, unwrap
from pilotlight_runtime.guest.own_calls import OwnCalls, RunHook
from pilotlight_runtime.guest.rehearsals.compile_files import CompileFiles
from pilotlight_runtime.guest.rehearsals.compile_times import compile_s

THREADS = "OMP_NUM_THREADS"
Hook = Callable[[], Any]


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
    if load.packages:
        add_packages(load.packages)
    sys.path.insert(0, load.root)
    importlib.invalidate_caches()  # the files came after this interpreter had read the folder


def add_packages(folder: str) -> None:
    """Have modules found in a folder before those of the base environment, and after those of Python itself.

    What files named *.pth say there is done, as in every folder of packages.
    """
    import site  # it is there already: every interpreter starts with it

    bases = {os.path.realpath(each) for each in site.getsitepackages()}
    first = next((place for place, path in enumerate(sys.path) if os.path.realpath(path) in bases), len(sys.path))
    sys.path.insert(first, folder)
    site.addsitedir(folder)
    # For programs that the function starts.
    os.environ.setdefault("PYTHONPATH", folder)
    os.environ["PATH"] = f"{folder}/bin:{os.environ.get('PATH', os.defpath)}"


def set_threads(cores: int) -> None:
    """Limit the threads of numeric libraries, imported already or later."""
    os.environ[THREADS] = str(cores)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(cores)


@contextmanager
def step(channel: Channel, name: str) -> Iterator[None]:
    """Time one step and send it; an exception of the tenant's code becomes a LoadError and NotLoaded.

    What was compiled meanwhile is left out: that is a step of its own.
    """
    began, compiled = time.perf_counter(), compile_s()
    try:
        yield
    except BaseException as error:
        channel.send(LoadError(step=name, error=remote_error(error)))
        raise NotLoaded(f"{name} failed") from error
    took_s = time.perf_counter() - began - (compile_s() - compiled)
    channel.send(LoadStep(name=name, ms=max(0.0, took_s) * 1000))


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


def open_reports(load: Load, channel: Channel) -> None:
    """Have what runs in this process tell the agent how full it is, if that listens."""
    if load.takes_reports:
        open_engine_reports(lambda report: channel.send(EngineReportOut(report=report)))


def load_blocking(load: Load, channel: Channel, nested: GuestNested, wait: RunHook) -> GuestTarget:
    """Load with plain hooks; `wait` runs the asynchronous ones to their end. Raises NotLoaded."""
    compiled = Compiled(load, channel)
    with step(channel, "import"):
        prepare(load)
        thing = open_function(load.spec, nested)
    with step(channel, "enter"):
        target = target_of(load.spec, thing)
        for hook in target.enter:
            call_hook(hook, wait)
    own = OwnCalls(load.spec, target, wait)
    if own.has_warmup:
        with step(channel, "warmup"):
            own.warm_up()
    if own.has_check:
        with step(channel, "check"):
            own.check()
    own.keep_check(is_async=False)
    compiled.give_away()
    return target


async def load_async(load: Load, channel: Channel, nested: GuestNested) -> GuestTarget:
    """Load within the event loop of the calls, so that what hooks open belongs to it. Raises NotLoaded."""
    compiled = Compiled(load, channel)
    with step(channel, "import"):
        prepare(load)
        thing = open_function(load.spec, nested)
        open_reports(load, channel)
    with step(channel, "enter"):
        target = target_of(load.spec, thing)
        for hook in target.enter:
            await await_hook(hook)
    own = OwnCalls(load.spec, target)
    if own.has_warmup:
        with step(channel, "warmup"):
            await own.warm_up_async()
    if own.has_check:
        with step(channel, "check"):
            await own.check_async()
    own.keep_check(is_async=True)
    compiled.give_away()
    return target


class Compiled:
    """What compilers keep for the next container: laid out before the import, handed over at the end.

    Both count into the step `compile`, with the time that torch has compiled.
    """

    def __init__(self, load: Load, channel: Channel) -> None:
        began = time.perf_counter()
        self._channel = channel
        self._files = CompileFiles(load.compiled, load.compile_into) if load.compile_into else None
        self._laid_out = 0
        if self._files is not None:
            os.environ.update(self._files.variables(load.spec.env))
            self._laid_out = self._files.lay_out()
        self._spent_s = time.perf_counter() - began

    def give_away(self) -> None:
        """Send the agent what is new, and the step if there was anything to do."""
        began, sent = time.perf_counter(), 0
        for path, whole in self._files.fresh() if self._files is not None else ():
            if not self._send(path, whole):
                break
            sent += 1
        spent_s = self._spent_s + compile_s() + time.perf_counter() - began
        if sent or self._laid_out or compile_s():
            self._channel.send(LoadStep(name="compile", ms=spent_s * 1000))

    def _send(self, path: str, whole: Path) -> bool:
        """Send a file in pieces; False: the agent takes no more."""
        try:
            with whole.open("rb") as file:
                left = os.fstat(file.fileno()).st_size
                while True:
                    data = file.read(min(COMPILE_PIECE, left))
                    left -= len(data)
                    ends = not left or len(data) < COMPILE_PIECE
                    self._channel.send(CompilePiece(path=path, data=data, ends=ends))
                    if not self._channel.receive_one().go_on:
                        return False
                    if ends:
                        return True
        except OSError as error:
            if isinstance(error, AgentGone):
                raise
            return True  # it is gone again


def call_hook(hook: Hook, wait: RunHook) -> Any:
    """Run a hook, which runs for no call: not even for one beside it, whose answers nobody might read by then."""
    before = RUNNING_CALL.set(IN_HOOK)
    try:
        answer = hook()
        return wait(answer) if inspect.isawaitable(answer) else answer
    finally:
        RUNNING_CALL.reset(before)


async def await_hook(hook: Hook) -> Any:
    """`call_hook` in an event loop."""
    before = RUNNING_CALL.set(IN_HOOK)
    try:
        answer = hook()
        return await answer if inspect.isawaitable(answer) else answer
    finally:
        RUNNING_CALL.reset(before)


def send_loaded(channel: Channel, target: GuestTarget) -> None:
    """Send Loaded, and freeze what has been loaded for the garbage collector."""
    gc.freeze()
    channel.send(Loaded(parks=target.parks))


class HookRunner:
    """Runs asynchronous hooks in one event loop."""

    def __init__(self) -> None:
        self._runner: Any = None

    def __call__(self, hook: Awaitable[Any]) -> Any:
        self._runner = self._runner or importlib.import_module("asyncio").Runner()
        return self._runner.run(_await(hook))

    def close(self) -> None:
        """End the loop, if there is one."""
        if self._runner is not None:
            self._runner.close()


async def _await(hook: Awaitable[Any]) -> Any:
    RUNNING_CALL.set(IN_HOOK)  # of this run alone, whose context is the loop's
    return await hook


@contextmanager
def reported() -> Iterator[None]:
    """Log what a hook at the end raises, so that the next one runs."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()
