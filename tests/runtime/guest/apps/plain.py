"""A tenant's plain functions: what a guest is given to run."""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pilotlight import App

if TYPE_CHECKING:
    from torch import Tensor

app = App("plain")
left_behind: contextvars.ContextVar[str] = contextvars.ContextVar("left_behind", default="nothing")


class Unprintable(Exception):
    """An exception whose text is a trap."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


@app.gpu_function
def nothing() -> None:
    """No work at all."""


@app.gpu_function
async def nothing_async() -> None:
    """No work at all, in an event loop."""


@app.gpu_function
def echo(value: Any = None) -> Any:
    """What it was given."""
    return value


@app.gpu_function
def add_one(tensor: Tensor) -> Any:
    """A tensor of tensors' own arithmetic, and the threads that it may use."""
    import torch

    return tensor + 1, torch.get_num_threads()


@app.gpu_function
def act(kind: str) -> Any:
    """Do what tenants do, good and bad."""
    return globals()[f"_{kind}"]()


@app.gpu_function
def hold(path: str) -> str:
    """Say so, and wait until somebody writes into a FIFO."""
    print("holding")
    return Path(path).read_text()


@app.gpu_function
def count(upto: int, stop_at: int = -1) -> Iterator[int]:
    """Numbers from 1; raises at `stop_at`; says when it is closed."""
    try:
        for number in range(1, upto + 1):
            if number == stop_at:
                raise LookupError(f"no {number}")
            yield number
    finally:
        print("closed")


@app.gpu_function
def stubborn() -> Iterator[int]:
    """A generator whose clean-up raises."""
    try:
        yield 1
        yield 2
    finally:
        raise RuntimeError("clean-up failed")


def _raise() -> None:
    raise ValueError("the reason")


def _lose_device() -> None:
    raise RuntimeError("CUDA error: an illegal memory access was encountered")


def _raise_unprintable() -> None:
    raise Unprintable


def _raise_long() -> None:
    raise ValueError("x" * 1_000_000)


def _recurse() -> None:
    _recurse()


def _quit() -> None:
    sys.exit(3)


def _interrupt() -> None:
    raise KeyboardInterrupt


def _die() -> None:
    print("last words", end="")
    sys.stdout.flush()
    os._exit(7)


def _fork() -> int:
    if os.fork() == 0:
        return 1  # the child runs into the platform's code
    os.wait()
    return 2


def _thing() -> object:
    return object()


def _generator() -> Any:
    return (n for n in range(3))


def _huge() -> bytes:
    return bytes(33 * 2**20)


def _main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _context() -> str:
    before = left_behind.get()
    left_behind.set("something")
    return before


def _environment() -> dict[str, str]:
    return {**os.environ, "sys.path[0]": sys.path[0]}


def _speak() -> None:
    print("to stdout")
    print("to stderr", file=sys.stderr)
    print("half a surrogate: \ud800")
