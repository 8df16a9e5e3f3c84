"""The `openai` client asks for embeddings."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI

from pilotlight_core.model import values
from pilotlight_core.model.spec import Mode
from tests.gateway.http.openai.models import NAME, chunks, generate, served
from tests.gateway.world import World

WORDS = chunks("Hel", "lo", {"finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


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
