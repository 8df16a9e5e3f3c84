"""The process of a blank: an interpreter with the expensive imports done that waits for its one Load."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import time
from io import TextIOWrapper

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.agent_channel import Channel
from pilotlight_runtime.guest.basics.cuda_probe import has_opened_cuda
from pilotlight_runtime.guest.drain_hooks import DrainHooks
from pilotlight_runtime.guest.frames import FRAMES, Hello, Leave, Load, MalformedFrame
from pilotlight_runtime.guest.guest_nested import GuestNested
from pilotlight_runtime.guest.loading import HookRunner, NotLoaded, call_hook, load_blocking, reported, send_loaded
from pilotlight_runtime.guest.serial_server import SerialServer
from pilotlight_runtime.guest.threaded_server import ThreadedServer

SOCKET = "PL_FD"
"""Number of the inherited socket."""
PREIMPORT = "PL_PREIMPORT"
"""Names of modules to import before the Load, by commas; missing ones are skipped."""
LOOP = "pilotlight_runtime.guest.async_server"
"""Imported late: asyncio takes longer to import than all the rest, and not every function needs it."""
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""With it torch asks NVML whether there is a GPU, and not CUDA, which would open it."""
SDK = ("pilotlight.app", "pilotlight.decorate", "pilotlight.markers")
"""What every tenant's module imports, sooner or later."""


def main() -> None:
    began = time.perf_counter()
    with exits.with_agent():
        channel = Channel(socket.socket(fileno=int(os.environ.pop(SOCKET))))
        configure_process()
        wanted = os.environ.pop(PREIMPORT, "")
        # With its Load here already, a caller waits, and the function may not need these modules.
        modules = () if channel.wait_readable(0) else preimport(wanted)
        cuda = bool(modules) and has_opened_cuda()
        took_ms = (time.perf_counter() - began) * 1000
        channel.send(Hello(pid=os.getpid(), ms=took_ms, modules=modules, frames=FRAMES, cuda=cuda))
        load = channel.receive_one()
        if isinstance(load, Leave):
            exits.exit_now(exits.IN_ORDER)
        if not isinstance(load, Load):
            raise MalformedFrame(f"the first frame is {type(load).__name__}: expected Load")
        try:
            load_and_serve(load, channel)
        except NotLoaded:
            exits.exit_now(exits.NOT_LOADED)
    exits.exit_now(exits.IN_ORDER)


def configure_process() -> None:
    """Send output by lines, and ignore Ctrl-C, which the agent handles."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def preimport(names: str) -> tuple[str, ...]:
    """Import the installed modules of `names`, and freeze them for the garbage collector; none may open CUDA."""
    for name in (LOOP, *SDK):
        _importable(name)
    is_given = NVML_CHECK in os.environ
    os.environ.setdefault(NVML_CHECK, "1")
    found = tuple(name for name in names.split(",") if name and _importable(name))
    if not is_given:  # the tenant's code is not to find it
        del os.environ[NVML_CHECK]
    gc.collect()
    gc.freeze()
    return found


def _importable(name: str) -> bool:
    try:
        importlib.import_module(name)
    except Exception:  # noqa: BLE001 - the tenant's own import raises it again
        return False
    return True


def load_and_serve(load: Load, channel: Channel) -> None:
    """Load the function and serve it until Leave; raises NotLoaded."""
    channel.joins_chunks = load.takes_chunks
    if any(method.is_async for method in load.spec.methods):
        importlib.import_module(LOOP).serve(load, channel)
    else:
        serve(load, channel)


def serve(load: Load, channel: Channel) -> None:
    """`load_and_serve` for a function without asynchronous methods."""
    wait, nested = HookRunner(), GuestNested(channel, load)
    target = load_blocking(load, channel, nested, wait)
    send_loaded(channel, target)
    draining = DrainHooks(channel, target.drain)
    if load.spec.max_inputs == 1:
        SerialServer(channel, target, nested, wait, draining).serve()
    else:
        ThreadedServer(channel, target, nested, load.spec.max_inputs, wait, draining).serve()
    draining.join()
    for hook in target.exit:
        with reported():
            call_hook(hook, wait)
