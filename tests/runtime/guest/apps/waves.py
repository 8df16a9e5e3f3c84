"""A tenant's class with asynchronous methods."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pilotlight import App, batched, concurrent, enter, exit, method  # noqa: A004 - the SDK's name

app = App("waves")
left_behind: contextvars.ContextVar[str] = contextvars.ContextVar("left_behind", default="nothing")


@app.gpu_function
@concurrent(max_inputs=2)
class Waves:
    """Everything asynchronous, and one method that is not."""

    @enter()
    async def start(self) -> None:
        self.loop = asyncio.get_running_loop()

    async def __check__(self) -> None:
        assert self.loop is asyncio.get_running_loop()

    @exit()
    async def stop(self) -> None:
        print("same loop" if self.loop is asyncio.get_running_loop() else "another loop")

    @method()
    async def add(self, left: int, right: int) -> int:
        await asyncio.sleep(0)
        return left + right

    @method()
    async def fail(self, kind: str) -> None:
        await asyncio.sleep(0)
        raise {"value": ValueError("the reason"), "exit": SystemExit(3), "cancel": asyncio.CancelledError()}[kind]

    @method()
    async def hang(self) -> None:
        """Waits for ever, and says when it is cancelled."""
        print("hanging")
        try:
            await asyncio.Event().wait()
        finally:
            print("let go")

    @method()
    async def context(self) -> str:
        before = left_behind.get()
        left_behind.set("something")
        return before

    @method()
    async def count(self, upto: int, stop_at: int = -1) -> AsyncIterator[int]:
        try:
            for number in range(1, upto + 1):
                if number == stop_at:
                    raise LookupError(f"no {number}")
                yield number
        finally:
            await asyncio.sleep(0)
            print("closed")

    @batched(max_batch_size=8, wait_ms=1)
    async def double(self, number: list[int]) -> list[Any]:
        await asyncio.sleep(0)
        if 13 in number:
            raise RuntimeError("unlucky")
        return [number * 2 for number in number]

    @method()
    def thread(self) -> bool:
        """Runs beside the loop, not in it."""
        return threading.current_thread() is threading.main_thread()

    @method()
    def each(self, upto: int) -> Iterator[int]:
        yield from range(upto)


@app.gpu_function
@concurrent(max_inputs=16)
async def shore(how: str = "") -> str:
    """Stays, or takes its whole process away."""
    if how == "spins":
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
    elif how == "exits":
        os._exit(3)
    elif how == "aborts":
        os.abort()
    elif how == "exits later":
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.Event().wait()
    elif how == "forks":
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)  # noqa: ASYNC222 - it ends at once
    elif how == "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return how
