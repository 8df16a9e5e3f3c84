"""A blank: an interpreter with the expensive imports done, waiting to be told what it is. It is used once."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any

from pilotlight_runtime.guest import exits
from pilotlight_runtime.guest.channel import Channel
from pilotlight_runtime.guest.frames import Hello, Leave, Load, Loaded, MalformedFrame
from pilotlight_runtime.guest.load import NotLoaded, await_hook, call_hook, load_async, load_blocking
from pilotlight_runtime.guest.loop import LoopServer
from pilotlight_runtime.guest.solo import SoloServer
from pilotlight_runtime.guest.threads import ThreadServer

SOCKET = "PL_FD"
"""Number of the inherited socket."""
PREIMPORT = "PL_PREIMPORT"
"""Names of modules to import before the Load, by commas; those that are not installed are passed over."""


def main() -> None:
    """Be a blank, then the function; ends the process."""
    began = time.perf_counter()
    with exits.with_agent():
        channel = Channel(socket.socket(fileno=int(os.environ.pop(SOCKET))))
        settle()
        modules = preimport(os.environ.pop(PREIMPORT, ""))
        channel.send(Hello(pid=os.getpid(), ms=(time.perf_counter() - began) * 1000, modules=modules))
        load = channel.receive_one()
        if isinstance(load, Leave):
            exits.now(exits.IN_ORDER)
        if not isinstance(load, Load):
            raise MalformedFrame(f"the first frame is {type(load).__name__}: expected Load")
        try:
            become(load, channel)
        except NotLoaded:
            exits.now(exits.NOT_LOADED)
    exits.now(exits.IN_ORDER)


def settle() -> None:
    """Lines of output travel as they are printed, and Ctrl-C at the terminal is the agent's business."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def preimport(names: str) -> tuple[str, ...]:
    """Import what is installed of `names`; what stands then is never looked at by the garbage collector again."""
    found = []
    for name in filter(None, names.split(",")):
        try:
            importlib.import_module(name.strip())
            found.append(name.strip())
        except Exception:  # noqa: BLE001, S112 - whoever needs it will be told why it cannot be imported
            continue
    gc.collect()
    gc.freeze()
    return tuple(found)


def become(load: Load, channel: Channel) -> None:
    """Load the function and serve it; returns when the agent said Leave and the exit hooks have run.

    Raises:
        NotLoaded
    """
    runner = asyncio.Runner()  # without `with`, it makes a loop only when an asynchronous hook needs one
    if any(method.is_async for method in load.spec.methods):
        runner.run(_serve_async(load, channel))
        return
    target = load_blocking(load, channel, lambda hook: runner.run(_await(hook)))
    _ready(channel)
    if load.spec.max_inputs == 1:
        SoloServer(channel, target).serve()
    else:
        ThreadServer(channel, target, load.spec.max_inputs).serve()
    for hook in target.exit:
        with reported():
            call_hook(hook, lambda answer: runner.run(_await(answer)))


async def _serve_async(load: Load, channel: Channel) -> None:
    target = await load_async(load, channel)
    _ready(channel)
    await LoopServer(channel, target, load.spec.max_inputs).serve()
    for hook in target.exit:
        with reported():
            await await_hook(hook)


@contextmanager
def reported() -> Iterator[None]:
    """What an exit hook raises goes into the tenant's log, and the next one runs."""
    try:
        yield
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()


def _ready(channel: Channel) -> None:
    gc.freeze()  # the model stays, too
    channel.send(Loaded())


async def _await(hook: Awaitable[Any]) -> Any:
    return await hook
