"""The `openai` client asks for responses."""

from __future__ import annotations

from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from pilotlight_core.model.errors import ContainerDied
from tests.gateway.http.openai.models import NAME, chunks, served
from tests.gateway.world import World

WORDS = chunks("Hel", "lo", {"finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


async def test_a_response(world: World, client: AsyncOpenAI) -> None:
    """To a whole conversation, which becomes the messages of a chat."""
    served(world)
    world.calls.events = WORDS
    conversation: Any = [
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "What is "}, {"type": "input_text", "text": "it?"}],
        },
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "reasoning", "summary": []},
        {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
    ]
    answer = await client.responses.create(
        model=NAME, input=conversation, instructions="Be brief.", max_output_tokens=9, store=False,
        tools=[{"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": True}],
        tool_choice={"type": "function", "name": "look"},
    )  # fmt: skip

    assert (answer.output_text, answer.status, answer.instructions) == ("Hello", "completed", "Be brief.")
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 2)
    look = {"name": "look", "parameters": {"type": "object"}, "strict": True}
    assert msgspec.msgpack.decode(world.calls.seen[0].input) == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is it?"},
            {
                "role": "assistant", "content": None,
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        ],
        "max_tokens": 9,
        "tools": [{"type": "function", "function": look}],
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }  # fmt: skip


async def test_a_streamed_response(world: World, client: AsyncOpenAI) -> None:
    """The client's own reader puts it together: text, then called tools."""
    served(world)
    world.calls.events = chunks(
        "Hel", "lo",
        {"tool_calls": [{"index": 0, "id": "c1", "name": "look", "arguments": '{"a"'}]},
        {"tool_calls": [{"index": 0, "arguments": ":1}"}]},
        {"finish_reason": "tool_calls", "usage": {"prompt_tokens": 1, "completion_tokens": 2}},
    )  # fmt: skip
    async with client.responses.stream(model=NAME, input="hi") as stream:
        kinds = [event.type async for event in stream]
        final = await stream.get_final_response()

    assert final.output_text == "Hello"
    called: Any = final.output[1]
    assert (called.type, called.call_id, called.name, called.arguments) == ("function_call", "c1", "look", '{"a":1}')
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert kinds.count("response.output_text.delta") == kinds.count("response.function_call_arguments.delta") == 2


async def test_a_response_with_a_form(world: World, client: AsyncOpenAI) -> None:
    """A schema that the answer keeps reaches the function; the client reads the answer by it."""

    class City(BaseModel):
        name: str

    served(world)
    world.calls.events = chunks('{"name":', '"Bonn"}')
    answer = await client.responses.parse(model=NAME, input="Where?", text_format=City)

    assert answer.output_parsed == City(name="Bonn")
    asked = msgspec.msgpack.decode(world.calls.seen[0].input)["response_format"]
    assert (asked["type"], asked["json_schema"]["name"]) == ("json_schema", "City")


async def test_a_response_that_is_cut_short_or_breaks_off(world: World, client: AsyncOpenAI) -> None:
    """It says why, and what breaks raises."""
    served(world)
    world.calls.events = chunks({"text": "Hel", "finish_reason": "length"})
    short = await client.responses.create(model=NAME, input="hi")
    events = [event async for event in await client.responses.create(model=NAME, input="hi", stream=True)]
    world.calls.error = ContainerDied("It died.")
    with pytest.raises(openai.APIError) as broken:
        async for _ in await client.responses.create(model=NAME, input="hi", stream=True):
            pass
    with pytest.raises(openai.BadRequestError) as kept:
        await client.responses.create(model=NAME, input="hi", previous_response_id="resp_1")

    assert short.incomplete_details is not None
    assert (short.status, short.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert [item.status for item in short.output if item.type == "message"] == ["incomplete"]
    assert [event.item.status for event in events if event.type == "response.output_item.done"] == ["incomplete"]
    assert events[-1].type == "response.incomplete"
    assert broken.value.code == "container_died"
    assert kept.value.param == "previous_response_id"


async def test_what_is_to_be_kept_is_not_and_what_was_kept_is_not_there(world: World, client: AsyncOpenAI) -> None:
    """`store` is ignored by name; a response is neither fetched, deleted nor cancelled."""
    served(world)
    world.calls.events = WORDS
    raw = await client.responses.with_raw_response.create(
        model=NAME, input="hi", store=True, truncation="auto", background=False, reasoning={"effort": "low"},
        include=["reasoning.encrypted_content"], parallel_tool_calls=True, service_tier="auto", user="me",
    )  # fmt: skip
    made = raw.parse()

    assert made.output_text == "Hello"
    assert set(raw.headers["pilotlight-ignored"].split(", ")) == {"store", "reasoning", "service_tier"}
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            await ask(made.id)
