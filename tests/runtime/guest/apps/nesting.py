"""Functions that call others."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pilotlight import (
    App,
    Function,
    NestedRefused,
    PilotlightError,
    batched,
    concurrent,
    drain,
    enter,
    method,
    park,
    unpark,
)

app = App("nesting")


def refusal(work: Any) -> str:
    """Why something is refused; "": it is not."""
    try:
        work()
    except NestedRefused as error:
        return error.detail.split(":")[0]
    return ""


@app.gpu_function
def other(number: int) -> int:
    """Stands for what is called."""
    return number


@app.gpu_function
def plain(number: int) -> Any:
    """Call the one above."""
    return other.remote(number)


@app.gpu_function
def named(text: str) -> Any:
    """Call one of another app, by name and place."""
    return Function.from_name("shop", "hello").remote(text, times=2)


@app.gpu_function
def in_thread(number: int) -> list[Any]:
    """From a thread without the call's context: there is only one call."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(other.remote(number)))
    thread.start()
    thread.join()
    return found


@app.gpu_function
def stream(upto: int) -> Iterator[Any]:
    """Call between the chunks."""
    for number in range(upto):
        yield other.remote(number)


@app.gpu_function
@concurrent(max_inputs=4)
def shared(number: int, apart: bool = False) -> Any:
    """One of several calls; `apart`, from a thread that may be of any of them."""
    if not apart:
        return other.remote(number)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(refusal(lambda: other.remote(number))))
    thread.start()
    thread.join()
    return found[0]


@app.gpu_function
@concurrent(max_inputs=4)
async def loop(number: int, how: str = "aio") -> Any:
    """In an event loop."""
    if how == "blocking":
        return refusal(lambda: other.remote(number))
    if how == "left":
        task = asyncio.ensure_future(other.remote.aio(number))
        await asyncio.sleep(0)
        task.cancel()
        return "left"
    return await other.remote.aio(number)


@app.gpu_function
@batched(max_batch_size=2, wait_ms=1)
def batch(number: list[int]) -> list[str]:
    """Two calls at once."""
    return [refusal(lambda: other.remote(1)) for _ in number]


@app.gpu_function
class Hooked:
    """Has no call while it is made."""

    @enter()
    def start(self) -> None:
        """Try to call."""
        self.said = refusal(lambda: other.remote(1))

    @method()
    def tell(self) -> str:
        """What came of it."""
        return self.said


@app.gpu_function
@concurrent(max_inputs=4)
class Leaving:
    """Has hooks that try to call, while a call runs or when all are over."""

    @park()
    def away(self) -> None:
        """It leaves."""
        print("park", refusal(lambda: other.remote(1)))

    @unpark()
    async def back(self) -> None:
        """It returns."""
        print("unpark", refusal(lambda: other.remote.aio(1).send(None)))

    @drain()
    def end(self) -> None:
        """Its node is taken away."""
        print("drain", refusal(lambda: other.remote(1)))

    @method()
    def wait(self, path: str) -> str:
        """Until somebody has written into a pipe."""
        return Path(path).read_text()


@app.gpu_function
def many(count: int) -> str:
    """Make as many as that without waiting for them."""
    from pilotlight_core.model.messages.running_code import nested_port

    port = nested_port()
    assert port is not None

    def begin() -> None:
        for _ in range(count):
            port.begin("shop.hello", b"\x80", of_app=False, blocking=False)

    return refusal(begin)


@app.gpu_function
def beside(path: str) -> Iterator[int]:
    """A stream beside which a thread makes the first call, once it is told to."""

    def call() -> None:
        Path(path).read_text()
        with contextlib.suppress(PilotlightError):
            other.remote(1)

    thread = threading.Thread(target=call)
    thread.start()
    yield 1
    yield 2
    thread.join()
