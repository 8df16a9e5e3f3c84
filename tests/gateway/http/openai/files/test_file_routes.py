"""The `openai` client uploads, lists and reads files."""

from __future__ import annotations

import openai
import pytest
from openai import AsyncOpenAI

from tests.gateway.http.openai.models import chunks, served
from tests.gateway.world import World

WORDS = chunks("Hel", "lo", {"finish_reason": "stop", "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


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
