"""The `openai` client as it is published: responses, embeddings, files and batches."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from pilotlight_core.model import values
from pilotlight_core.model.errors import ContainerDied
from pilotlight_core.model.spec import Mode
from tests.gateway.http.openai.models import NAME, chunks, generate, served
from tests.gateway.world import World

WORDS = chunks("Hel", "lo", {"finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


@pytest.fixture
async def client(world: World, address: str) -> AsyncIterator[AsyncOpenAI]:
    """One that tries nothing twice."""
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=str(world.key), max_retries=0) as client:
        yield client


# -- responses -----------------------------------------------------------------------------------------------------


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
    assert events[-1].type == "response.incomplete"
    assert broken.value.code == "container_died"
    assert kept.value.param == "previous_response_id"


# -- embeddings ----------------------------------------------------------------------------------------------------


def embedding(world: World, *names: str) -> None:
    """A function that makes embeddings is served."""
    texts = {"type": "array", "items": {"type": "string"}}
    schema = {"type": "object", "properties": dict.fromkeys(names, texts), "additionalProperties": False}
    served(world, generate(mode=Mode.UNARY, input_schema=schema))


async def test_embeddings(world: World, client: AsyncOpenAI) -> None:
    """As base64, which the client asks for by itself, and as numbers, whatever the function calls its texts."""
    embedding(world, "sentences")
    vectors = [[0.5, -1.0], [2, 0.25]]
    world.calls.output = msgspec.msgpack.encode({"embeddings": vectors, "prompt_tokens": 5})
    asked = await client.embeddings.create(model=NAME, input=["a", "b"])
    floats = await client.embeddings.create(model=NAME, input=["a", "b"], encoding_format="float")

    assert [list(one.embedding) for one in asked.data] == vectors
    assert [one.embedding for one in floats.data] == vectors
    assert asked.usage.prompt_tokens == 5
    assert msgspec.msgpack.decode(world.calls.seen[0].input) == {"sentences": ["a", "b"]}


async def test_many_embeddings_and_arrays(world: World, client: AsyncOpenAI) -> None:
    """What is much is written in a worker; an array of numpy's is as good as lists."""
    numpy: Any = pytest.importorskip("numpy")
    embedding(world, "input")
    world.calls.output = values.encode(numpy.arange(60_000, dtype="float32").reshape(20, 3_000))
    found = await client.embeddings.create(model=NAME, input=["x"] * 20)

    assert list(found.data[19].embedding) == list(array("f", range(57_000, 60_000)))


@pytest.mark.parametrize("output", [[[1.0]], [["a"], [1.0]], "no", {"vectors": []}, [[float("nan")], [1.0]]])
async def test_no_embeddings(world: World, client: AsyncOpenAI, output: Any) -> None:
    """What is no vector for each text is refused with what was expected."""
    embedding(world, "input")
    world.calls.output = msgspec.msgpack.encode(output)
    with pytest.raises(openai.InternalServerError) as refused:
        await client.embeddings.create(model=NAME, input=["a", "b"])

    assert refused.value.code == "bad_output"


# -- files and batches ---------------------------------------------------------------------------------------------


async def test_files(world: World, client: AsyncOpenAI) -> None:
    """Uploaded, listed page by page, read and deleted."""
    content = b"".join(b"%09d\n" % number for number in range(700_000))
    large = await client.files.create(file=("../../etc/in.jsonl", content), purpose="batch")
    others = [await client.files.create(file=("b", b""), purpose="user_data") for _ in range(2)]
    got = await client.files.content(large.id)
    listed = [file.id async for file in await client.files.list(limit=2)]
    some = [file.id async for file in await client.files.list(purpose="batch")]
    gone = await client.files.delete(large.id)

    assert (large.filename, large.bytes, large.purpose, large.status) == (
        "in.jsonl", len(content), "batch", "processed",
    )  # fmt: skip
    assert got.content == content
    assert sorted(listed) == sorted([large.id, *(one.id for one in others)])
    assert some == [large.id]
    assert gone.deleted
    for ask in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError):
            await ask(large.id)
    assert [blob async for blob in world.blobs.listed("acme")] == []


async def test_a_batch_of_requests(world: World, client: AsyncOpenAI) -> None:
    """Its lines become inputs of the function; its answers, and its errors, are files."""
    served(world)
    lines = [
        {
            "custom_id": f"row-{number}", "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": NAME, "messages": [{"role": "user", "content": str(number)}]},
        }
        for number in range(3)
    ]  # fmt: skip
    file = await client.files.create(
        file=("in.jsonl", b"\n".join(msgspec.json.encode(line) for line in lines)), purpose="batch"
    )
    batch = await client.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"run": "7"}
    )
    again = await client.batches.retrieve(batch.id)
    listed = [one.id async for one in await client.batches.list(limit=1)]

    assert (batch.status, batch.object, batch.endpoint, batch.metadata) == (
        "in_progress", "batch", "/v1/chat/completions", {"run": "7"},
    )  # fmt: skip
    assert again == batch
    assert listed == [batch.id]
    assert batch.request_counts is not None
    assert batch.request_counts.total == 3
    (record,) = [record for record, _ in world.batches.kept.values()]
    assert record.openai is not None
    assert (record.function, record.method, record.openai.model) == ("acme:shop.tells", "", NAME)
    cancelled = await client.batches.cancel(batch.id)
    assert cancelled.status == "cancelling"


async def test_what_is_no_batch_of_requests(world: World, client: AsyncOpenAI) -> None:
    """Each mistake is named with its line and field."""
    served(world)
    good = {"model": NAME, "messages": [{"role": "user", "content": "hi"}]}
    url = "/v1/chat/completions"
    wrong: list[tuple[list[dict[str, Any]], str]] = [
        ([{"custom_id": "a", "url": "/v1/embeddings", "body": good}], "url"),
        ([{"custom_id": "a", "url": url, "body": good}, {"custom_id": "a", "url": url, "body": good}], "custom_id"),
        ([{"custom_id": "a", "url": url, "body": good | {"stream": True}}], "body.stream"),
        ([{"custom_id": "a", "url": url, "body": good}, {"custom_id": "b", "url": url, "body": good | {"model": "x"}}],
         "body.model"),
        ([{"custom_id": "a", "url": url, "body": good | {"n": 3}}], "body.n"),
        ([{"url": url, "body": good}], "line"),
    ]  # fmt: skip
    fields = []
    for lines, _ in wrong:
        content = b"\n".join(msgspec.json.encode(line) for line in lines)
        file = await client.files.create(file=("in", content), purpose="batch")
        with pytest.raises(openai.APIStatusError) as refused:
            await client.batches.create(input_file_id=file.id, endpoint=url, completion_window="24h")
        assert refused.value.status_code in (400, 422)
        fields.append(refused.value.body["param"])
    assert fields == [field for _, field in wrong]

    other = await client.files.create(file=("in", b"{}"), purpose="user_data")
    for named, error in ((other.id, openai.BadRequestError), ("file-00000000000000000000", openai.NotFoundError)):
        with pytest.raises(error):
            await client.batches.create(input_file_id=named, endpoint=url, completion_window="24h")


async def test_anothers_files_and_batches(world: World, client: AsyncOpenAI, address: str) -> None:
    """Are not there."""
    served(world)
    file = await client.files.create(file=("in", b"{}"), purpose="batch")
    async with AsyncOpenAI(
        base_url=f"{address}/v1", api_key=str(world.add_key("rival", "admin")), max_retries=0
    ) as rival:
        with pytest.raises(openai.NotFoundError):
            await rival.files.content(file.id)
        with pytest.raises(openai.NotFoundError):
            await rival.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
        assert (await rival.files.list()).data == []
