"""Calls that a function makes of others, over a port in place of HTTP."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import msgspec
import pytest

import pilotlight
from pilotlight import App, Function, NestedRefused
from pilotlight_core.model import values
from pilotlight_core.model.messages.running_code import (
    RUNNING_CALL,
    NestedReply,
    open_nested_port,
)

app = App("shop")


@app.gpu_function
def hello(name: str, times: int = 1) -> str:
    """Greet."""
    return name * times


@app.gpu_function
def tokens(count: int) -> Iterator[int]:
    """Count."""
    yield from range(count)


class Reply(msgspec.Struct):
    body: bytes = b""
    problem: bytes = b""


class FakePort:
    """Answers at once with what was asked, unless told otherwise."""

    own_app = "shop"

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], bool, bool]] = []
        self.calls: list[str] = []
        self.left: list[Future[NestedReply]] = []
        self.output: Any = None
        self.problem: dict[str, Any] | None = None
        self.holds = False

    def begin(self, function: str, request: bytes, *, of_app: bool, blocking: bool) -> Future[NestedReply]:
        self.asked.append((function, values.decode(request), of_app, blocking))
        self.calls.append(RUNNING_CALL.get())
        begun: Future[NestedReply] = Future()
        if self.problem is not None:
            begun.set_result(Reply(problem=msgspec.json.encode(self.problem)))
        elif not self.holds:
            begun.set_result(Reply(body=values.encode({"output": self.output})))
        return begun

    def leave(self, begun: Future[NestedReply]) -> None:
        self.left.append(begun)


@pytest.fixture
def port() -> Iterator[FakePort]:
    """This process runs a function of the platform."""
    port = FakePort()
    open_nested_port(port)
    yield port
    open_nested_port(None)


def test_a_decorated_function_is_called_with_names(port: FakePort) -> None:
    """It is of the app that runs; another app's is not."""
    port.output = "AdaAda"
    assert hello.remote("Ada", times=2) == "AdaAda"
    assert port.asked == [("shop.hello", {"input": {"name": "Ada", "times": 2}}, True, True)]
    port.own_app = "other"
    hello.remote("Ada")
    assert port.asked[1][2] is False
    with pytest.raises(TypeError):
        hello.remote("Ada", wrong=1)  # type: ignore[call-arg]


def test_a_function_found_by_name_keeps_its_places(port: FakePort) -> None:
    """The platform knows its parameters; a deadline, a method and an id go along."""
    found = Function.from_name("shop", "Model", method="embed").options(deadline=5.0, id="cid_12345678")
    found.remote("Ada", times=2)

    assert port.asked == [
        (
            "shop.Model",
            {
                "input": {"times": 2}, "args": ["Ada"], "method": "embed", "id": "cid_12345678",
                "deadline_ms": pytest.approx(5_000.0),
            },
            False,
            True,
        )
    ]  # fmt: skip


def test_a_generator_gives_the_list_of_its_chunks(port: FakePort) -> None:
    """By `.remote()`, since nothing is streamed here."""
    port.output = [0, 1]
    found: object = tokens.remote(2)
    assert found == [0, 1]


def test_errors_are_those_of_calls_from_outside(port: FakePort) -> None:
    """By their codes."""
    port.problem = {"code": "unknown_function", "detail": "There is no function shop.x."}
    with pytest.raises(pilotlight.UnknownFunction, match=r"shop\.x"):
        hello.remote("Ada")
    port.problem = {"code": "nested_refused", "detail": "depth: too deep."}
    with pytest.raises(NestedRefused, match="depth"):
        hello.remote("Ada")


def test_a_map_makes_live_calls_for_the_call_that_runs(port: FakePort) -> None:
    """Though its calls run in a thread of their own."""
    port.output = "x"

    def work() -> list[str]:
        RUNNING_CALL.set("a")
        return list(hello.map(["a", "b", "c"]))

    assert contextvars.copy_context().run(work) == ["x"] * 3
    assert port.calls == ["a"] * 3
    assert not any(blocking for *_, blocking in port.asked)


async def test_a_task_that_is_cancelled_leaves_its_call(port: FakePort) -> None:
    """In an event loop."""
    port.output = "x"
    assert await hello.remote.aio("Ada") == "x"
    port.holds = True
    task = asyncio.ensure_future(hello.remote.aio("Ada"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(port.left) == 1


@pytest.mark.usefixtures("port")
def test_what_does_not_work_says_what_to_do() -> None:
    """Each by its name; nothing is asked of the platform."""
    client: Any = object()
    tries: dict[str, Any] = {
        r"job: .* Use \.remote": lambda: hello.spawn("Ada"),
        r"stream: .*\.remote\(…\)": lambda: list(tokens.remote_gen(2)),
        r"options\(client=…\)": lambda: hello.options(client=client).remote("Ada"),
        r"options\(on_stage=…\)": lambda: hello.options(on_stage=print).remote("Ada"),
        r"options\(idempotency_key=…\)": lambda: hello.options(idempotency_key="auto").remote("Ada"),
        r"options\(sticky=…\)": lambda: hello.options(sticky="ann").remote("Ada"),
        r"options\(run_at=…\)": lambda: hello.options(run_at=5.0).remote("Ada"),
        "client: a function has no key": lambda: pilotlight.cancel("call_x"),
    }
    for said, work in tries.items():
        with pytest.raises(NestedRefused, match=said):
            work()
