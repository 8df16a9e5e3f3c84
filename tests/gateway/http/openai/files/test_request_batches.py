"""The `openai` client submits batches of requests."""

from __future__ import annotations

from typing import Any

import msgspec
import openai
import pytest
from openai import AsyncOpenAI

from pilotlight_gateway.deploys.served_models import ServedModel
from pilotlight_gateway.http.openai.files.request_batches import decode_line
from tests.gateway.http.openai.models import NAME, chunks, served, taking
from tests.gateway.world import World

WORDS = chunks("Hel", "lo", {"finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


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


def test_a_batch_for_an_adapter_asks_for_it() -> None:
    """As a single call does: without it the model that it is on would answer."""
    url, asked = "/v1/chat/completions", {"model": "tiny:french", "messages": []}
    line = msgspec.json.encode({"custom_id": "a", "url": url, "body": asked})
    model = ServedModel(name="tiny:french", ref="chat.tells", adapter="french", parent="tiny")

    assert decode_line(url, taking("messages", "adapter"), model, line).input == {"messages": [], "adapter": "french"}
