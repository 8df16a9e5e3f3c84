"""Whole answers."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.spec import Mode
from pilotlight_gateway.http.openai import whole_answers
from tests.gateway.http.openai.models import NAME, chunks, generate, served
from tests.gateway.world import World


async def ask(world: World, headers: dict[str, str] | None = None, *, stream: bool = False) -> httpx.Response:
    """A chat."""
    async with world.client() as client:
        body: Any = {"model": NAME, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
        return await client.post("/v1/chat/completions", json=body, headers=headers)


async def test_a_large_answer_comes_whole(world: World) -> None:
    """And gives its memory back."""
    served(world)
    world.calls.events = chunks(*["x" * 100_000] * 8)
    answer = await ask(world)
    assert answer.json()["choices"][0]["message"]["content"] == "x" * 800_000
    assert world.services.budget.used == 0


async def test_an_answer_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it a stream is the way."""
    served(world)
    monkeypatch.setattr(whole_answers, "ANSWER_BYTES", 1_000)
    world.calls.events = chunks(*["x" * 600] * 2)
    answer = await ask(world)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "bad_output")
    assert world.services.budget.used == 0


@pytest.mark.parametrize("output", [7, None, ["a"], {"text": []}])
async def test_what_is_no_text_is_refused(world: World, output: Any) -> None:
    """Of a function that returns."""
    served(world, generate(mode=Mode.UNARY))
    world.calls.output = msgspec.msgpack.encode(output)
    assert (await ask(world)).json()["error"]["code"] == "bad_output"


@pytest.mark.parametrize(
    ("said", "param"),
    [
        ("messages.0.content.1: this model reads text only.", "messages.0.content.1"),
        ("prompt_ids.3: 90000 is no token", "prompt.3"),
        ("it takes no such thing", "input"),
    ],
)
async def test_what_an_engine_refuses_is_wrong_about_the_request(world: World, said: str, param: str) -> None:
    """Whether it is asked for a stream or not: a stock client shows its author the field."""
    served(world)
    for stream in (False, True):
        world.calls.events, world.calls.error = [], BadInput(said, field="input")
        answer = await ask(world, stream=stream)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, "bad_request", param)
        assert error["message"] == said


async def test_a_key_of_a_failed_request_stands_for_its_error(world: World) -> None:
    """As with native calls."""
    served(world)
    world.calls.events = chunks(7)
    first, second = await ask(world, {"idempotency-key": "k"}), await ask(world, {"idempotency-key": "k"})
    assert (first.status_code, second.status_code) == (500, 500)
    assert second.headers["idempotent-replayed"] == "true"
    assert len(world.calls.seen) == 1
    assert first.json()["error"]["code"] == "bad_output"
