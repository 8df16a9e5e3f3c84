"""Functions that call functions."""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

import pilotlight
from pilotlight import App, Function, batched, concurrent
from pilotlight_core.model.messages.running_code import nested_port
from pilotlight_runtime.guest.frames import NestedCall

app = App("nested")
SHORT = 2.0


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
@concurrent(max_inputs=64)
def double(number: int, nap: float = 0.0) -> int:
    """Twice as much, after a while."""
    time.sleep(nap)
    return 2 * number


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def twice(number: int, nap: float = 0.0) -> int:
    """Ask the function above, by its decorated name."""
    return double.remote(number, nap=nap)


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1, timeout=30)
def by_name(function: str, values: list[Any], named: dict[str, Any], threads: int = 0, app: str = "nested") -> Any:
    """Call what the caller names, a few times in threads if that is wanted."""
    other = Function.from_name(app, function)
    if not threads:
        return other.remote(*values, **named)
    with ThreadPoolExecutor(threads) as pool:
        contexts = [contextvars.copy_context() for _ in range(threads)]
        return list(pool.map(lambda context: context.run(other.remote, *values, **named), contexts))


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
@concurrent(max_inputs=8)
async def gathers(numbers: list[int], nap: float = 0.0) -> list[int]:
    """Ask many at a time, in an event loop."""
    return list(await asyncio.gather(*(double.remote.aio(number, nap=nap) for number in numbers)))


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def maps(numbers: list[int]) -> list[int]:
    """Ask many by a map."""
    return list(double.map(numbers))


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def misuse(how: str) -> str:
    """What cannot be done here is refused by name."""
    client: Any = object()
    tries: dict[str, Any] = {
        "spawn": lambda: double.spawn(1),
        "remote_gen": lambda: list(double.remote_gen(1)),
        "cancel": lambda: pilotlight.cancel("call_x"),
        "client": lambda: double.options(client=client).remote(1),
        "key": lambda: double.options(idempotency_key="k" * 16).remote(1),
        "itself": lambda: Function.from_name("nested", "misuse").remote("spawn"),
    }
    try:
        return f"allowed: {tries[how]()}"
    except pilotlight.NestedRefused as error:
        return error.detail


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
@batched(max_batch_size=2, wait_ms=1)
def in_batch(number: list[int]) -> list[int]:
    """A batch has no call of its own."""
    return [double.remote(one) for one in number]


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def environment() -> dict[str, list[str]]:
    """What a caller finds in the sandbox of its function: a key or a token of its tenant would be among it."""
    double.remote(1)
    network = Path("/sys/class/net")
    return {
        "names": sorted(os.environ),
        "values": sorted(os.environ.values()),
        "network": sorted(each.name for each in network.iterdir()) if network.is_dir() else [],
    }


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def length(text: str) -> list[Any]:
    """How long a text is, and the text."""
    return [len(text), text]


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
async def sleeper(seconds: float, name: str = "") -> str:
    """Say in the log that it began, and how it ended."""
    print(f"began {name}")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        print("woken")
        raise
    print("slept")
    return "slept"


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def waits(seconds: float, name: str = "") -> Any:
    """Wait for the function above."""
    return sleeper.remote(seconds, name)


@app.gpu_function(scaledown_window=2 * SHORT, forecast=False, max_containers=1)
def left(turns: int) -> str:
    """Hold the only slot, then wait for that of `right`."""
    time.sleep(1.0)
    return "left" if not turns else f"left {Function.from_name('nested', 'right').remote(turns=turns - 1)}"


@app.gpu_function(scaledown_window=2 * SHORT, forecast=False, max_containers=1)
def right(turns: int) -> str:
    """The same the other way round."""
    time.sleep(1.0)
    return "right" if not turns else f"right {Function.from_name('nested', 'left').remote(turns=turns - 1)}"


@app.gpu_function(scaledown_window=SHORT, forecast=False, max_containers=1)
def hostile(parents: list[str], times: int) -> list[str]:
    """Send frames of its own making over the guest's socket."""
    nested: Any = nested_port()
    nested.need_reader()
    answers: list[Future[Any]] = []
    for number, parent in enumerate(parents * times, 1_000_000):
        answers.append(Future())
        nested._open[number] = (parent, answers[-1])
        request = msgspec.msgpack.encode({"input": {"number": number, "nap": 2.0}})
        nested._channel.send(NestedCall(call_id=parent, number=number, function="nested.double", request=request))
    return [json.loads(answer.result().problem)["code"] for answer in answers]
