"""The `openai` client as it is published asks for chats and completions of a gateway that listens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from pilotlight_core.model.errors import ContainerDied, TooMuch, Unavailable
from tests.gateway.http.openai.models import NAME, chunks, served
from tests.gateway.world import World
from tests.waiting import until

HI: Any = [{"role": "user", "content": "hi"}]
WORDS = chunks(
    "Hel",
    {"text": "lo", "token_ids": [5]},
    {
        "text": "",
        "finish_reason": "length",
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 3},
    },
)


async def test_a_chat(world: World, client: AsyncOpenAI) -> None:
    """Whole: text, why it ended, what it used, and under which call it is found."""
    served(world)
    world.calls.events = WORDS
    answer = await client.chat.completions.create(model=NAME, messages=HI, max_completion_tokens=2, temperature=0)

    assert answer.choices[0].message.content == "Hello"
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (9, 3)
    assert (answer.model, answer._request_id) == (NAME, world.calls.seen[0].call_id)
    sent = msgspec.msgpack.decode(world.calls.seen[0].input)
    assert sent == {"messages": HI, "max_tokens": 2, "temperature": 0}


async def test_a_streamed_chat(world: World, client: AsyncOpenAI) -> None:
    """Piece by piece; the usage comes behind the last piece, if it was asked for."""
    served(world)
    world.calls.events = WORDS
    stream = await client.chat.completions.create(
        model=NAME, messages=HI, stream=True, stream_options={"include_usage": True}
    )
    got = [chunk async for chunk in stream]

    assert "".join(chunk.choices[0].delta.content or "" for chunk in got if chunk.choices) == "Hello"
    assert got[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in got if chunk.choices][-1] == "length"
    assert got[-1].choices == []
    assert got[-1].usage is not None
    assert got[-1].usage.completion_tokens == 2
    assert [chunk.usage for chunk in got[:-1]] == [None] * (len(got) - 1)


async def test_each_chunk_tells_the_tokens_so_far(world: World, client: AsyncOpenAI) -> None:
    """If that is asked for, of chats and completions; those of the prompt are known at the end."""
    served(world)
    last = {"finish_reason": "stop", "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    world.calls.events = chunks({"text": "Hel", "token_ids": [1, 2, 3]}, {"text": "lo", "token_ids": [4]}, last)
    asked: Any = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    chat = [one async for one in await client.chat.completions.create(model=NAME, messages=HI, **asked)]
    text = [one async for one in await client.completions.create(model=NAME, prompt="a", **asked)]

    for got in (chat[1:], text):
        told = [(one.usage.prompt_tokens, one.usage.completion_tokens) for one in got if one.usage is not None]
        assert told == [(0, 3), (0, 4), (3, 4), (3, 4)]
    assert chat[0].usage is None


async def test_the_synchronous_client(world: World, address: str) -> None:
    """It does as the other one."""
    served(world)
    world.calls.events = WORDS

    def ask() -> tuple[str | None, str]:
        with OpenAI(base_url=f"{address}/v1", api_key=str(world.key), max_retries=0) as client:
            whole = client.chat.completions.create(model=NAME, messages=HI)
            stream = client.chat.completions.create(model=NAME, messages=HI, stream=True)
            return whole.choices[0].message.content, "".join(one.choices[0].delta.content or "" for one in stream)

    assert await asyncio.to_thread(ask) == ("Hello", "Hello")


async def test_called_tools(world: World, client: AsyncOpenAI) -> None:
    """Whole, and in pieces: the first has the name, and each some of the arguments."""
    served(world)
    world.calls.events = chunks(
        {"tool_calls": [{"index": 0, "id": "call_a", "name": "weather", "arguments": '{"ci'}]},
        {"tool_calls": [{"index": 0, "arguments": 'ty":"Bonn"}'}, {"index": 1, "name": "time"}]},
        {"finish_reason": "tool_calls"},
    )
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    whole = await client.chat.completions.create(model=NAME, messages=HI, tools=tools)
    called = whole.choices[0].message.tool_calls or []
    stream = await client.chat.completions.create(model=NAME, messages=HI, tools=tools, stream=True)
    deltas = [part async for one in stream for part in one.choices[0].delta.tool_calls or []]

    assert [(one.id, one.function.name, one.function.arguments) for one in called] == [
        ("call_a", "weather", '{"city":"Bonn"}'), ("call_1", "time", ""),
    ]  # fmt: skip
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.content is None
    assert [(one.index, one.id, one.function.name, one.function.arguments) for one in deltas] == [
        (0, "call_a", "weather", '{"ci'), (0, None, None, 'ty":"Bonn"}'), (1, "call_1", "time", ""),
    ]  # fmt: skip
    assert msgspec.msgpack.decode(world.calls.seen[0].input)["tools"] == tools


async def test_likely_tokens(world: World, client: AsyncOpenAI) -> None:
    """Of chats and of completions, each in its own form."""
    served(world)
    likely = [{"token": "é", "id": 1, "logprob": -0.5, "top": [{"token": "e", "id": 2, "logprob": -1.5}]}]
    world.calls.events = chunks({"text": "é", "logprobs": likely, "finish_reason": "stop"})
    chat = await client.chat.completions.create(model=NAME, messages=HI, logprobs=True, top_logprobs=1)
    stream = await client.chat.completions.create(model=NAME, messages=HI, logprobs=True, stream=True)
    streamed = [one.choices[0].logprobs async for one in stream if one.choices[0].logprobs]
    text = await client.completions.create(model=NAME, prompt="caf", logprobs=1)

    assert chat.choices[0].logprobs is not None
    (token,) = chat.choices[0].logprobs.content or []
    assert (token.token, token.bytes, token.top_logprobs[0].token) == ("é", [195, 169], "e")
    assert len(streamed) == 1
    assert text.choices[0].logprobs is not None
    assert (text.choices[0].logprobs.token_logprobs, text.choices[0].logprobs.top_logprobs) == ([-0.5], [{"e": -1.5}])
    asked = [msgspec.msgpack.decode(call.input)["logprobs"] for call in world.calls.seen]
    assert asked == [1, 0, 1]


async def test_a_text_that_goes_on(world: World, client: AsyncOpenAI) -> None:
    """Whole and in pieces; a prompt may be the ids of its tokens."""
    served(world)
    world.calls.events = WORDS
    whole = await client.completions.create(model=NAME, prompt=["Say"], stop=["x", "y"], seed=1)
    stream = await client.completions.create(
        model=NAME, prompt=[1, 2], stream=True, stream_options={"include_usage": True}
    )
    got = [one async for one in stream]

    assert (whole.choices[0].text, whole.choices[0].finish_reason, whole.object) == (
        "Hello", "length", "text_completion",
    )  # fmt: skip
    assert "".join(one.choices[0].text for one in got if one.choices) == "Hello"
    assert got[-1].usage is not None
    asked = [msgspec.msgpack.decode(call.input) for call in world.calls.seen]
    assert asked == [{"prompt": "Say", "stop": ["x", "y"], "seed": 1}, {"prompt_ids": [1, 2]}]


async def test_what_went_wrong_is_raised(world: World, client: AsyncOpenAI, address: str) -> None:
    """By status, with the field, the code and the request's id."""
    served(world)
    bad: list[dict[str, Any]] = [
        {"n": 2}, {"logit_bias": {"50256": -100}}, {"messages": "hi"}, {"temperature": [1] * 3, "stop": 7},
        {"stream_options": {"include_usage": "maybe"}}, {"logprobs": True, "top_logprobs": 21},
    ]  # fmt: skip
    fields = []
    for one in bad:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.chat.completions.create(**{"model": NAME, "messages": HI, **one})
        fields.append(refused.value.param)
        assert refused.value.request_id
    assert fields == ["n", "logit_bias", "messages", "stop", "stream_options.include_usage", "top_logprobs"]

    world.calls.error = ContainerDied("It died.")
    with pytest.raises(openai.InternalServerError) as died:
        await client.chat.completions.create(model=NAME, messages=HI)
    assert (died.value.code, died.value.type) == ("container_died", "server_error")
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key="pl_live_none") as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.chat.completions.create(model=NAME, messages=HI)
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=str(world.add_key("acme", "read"))) as reader:
        with pytest.raises(openai.PermissionDeniedError):
            await reader.chat.completions.create(model=NAME, messages=HI)


async def test_a_stream_that_breaks_off_raises(world: World, client: AsyncOpenAI) -> None:
    """What came before is there; without the error a client would take that for all."""
    served(world)
    world.calls.events, world.calls.error = chunks("Hel"), ContainerDied("It died.")
    got = ""
    with pytest.raises(openai.APIError) as broken:  # noqa: PT012 - what came before counts
        async for one in await client.chat.completions.create(model=NAME, messages=HI, stream=True):
            got += one.choices[0].delta.content or ""

    assert (got, broken.value.code) == ("Hel", "container_died")


async def test_what_may_be_tried_again_is(world: World, address: str) -> None:
    """As the answer says: a full queue is, a container that died in the middle is not."""
    served(world)
    calls = []
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=str(world.key), max_retries=1) as client:
        for error in (TooMuch("Full.", code="queue_full", retry_after=0.001), ContainerDied("It died.")):
            world.calls.error, before = error, len(world.calls.seen)
            with pytest.raises(openai.APIStatusError):
                await client.chat.completions.create(model=NAME, messages=HI)
            calls.append(len(world.calls.seen) - before)

    assert calls == [2, 1]


async def test_who_hangs_up_cancels(world: World, client: AsyncOpenAI) -> None:
    """A stream that is closed, and an answer that nobody waits for any more."""
    served(world)
    world.calls.events, world.calls.hold = chunks("Hel"), asyncio.Event()
    stream = await client.chat.completions.create(model=NAME, messages=HI, stream=True)
    async with aclosing(stream.response), aclosing(aiter(stream)):
        await anext(aiter(stream))
    await until(lambda: len(world.calls.cancelled) == 1)
    with pytest.raises(openai.APITimeoutError):
        await client.chat.completions.create(model=NAME, messages=HI, timeout=0.2)
    await until(lambda: len(world.calls.cancelled) == 2)

    assert world.calls.seen[1].deadline_at - world.calls.seen[1].arrived_at == pytest.approx(0.2)


async def test_a_user_is_what_a_rollout_goes_by(world: World, client: AsyncOpenAI) -> None:
    """As the call says, and what its headers say."""
    served(world)
    world.calls.events = WORDS
    await client.chat.completions.create(
        model=NAME, messages=HI, user="ann", extra_headers={"Pilotlight-Sticky": "home", "X-Ring": "inner"}
    )
    head = world.calls.seen[0].head

    assert head is not None
    assert (head.user, head.sticky, head.shown[b"x-ring"]) == ("ann", "home", b"inner")


async def test_what_nothing_goes_by_is_named(world: World, client: AsyncOpenAI) -> None:
    """Fields of other servers, and of releases to come."""
    served(world)
    world.calls.events = WORDS
    raw = client.chat.completions.with_raw_response
    answer = await raw.create(model=NAME, messages=HI, user="u", extra_body={"brand_new": 1, "bad\r\nname": 2})

    assert answer.headers["pilotlight-ignored"] == "brand_new"
    assert int(answer.headers["openai-processing-ms"]) >= 0
    assert answer.headers["x-request-id"] == answer.headers["pilotlight-call-id"]


async def test_a_key_makes_a_request_run_once(world: World, client: AsyncOpenAI) -> None:
    """A repeated one gets the first one's answer."""
    served(world)
    world.calls.events = WORDS
    answers = [
        await client.chat.completions.create(model=NAME, messages=HI, extra_headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    ]

    assert answers[0] == answers[1]
    assert len(world.calls.seen) == 1


async def test_a_busy_platform(world: World, client: AsyncOpenAI) -> None:
    """Refused with when to come again."""
    served(world)
    world.calls.error = Unavailable("None is free.", retry_after=3.0)
    with pytest.raises(openai.InternalServerError) as refused:
        await client.chat.completions.create(model=NAME, messages=HI)

    assert refused.value.response.headers["retry-after"] == "3"
    assert refused.value.response.headers["x-should-retry"] == "true"
