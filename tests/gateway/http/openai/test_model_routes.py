"""The `openai` client looks for models."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.gateway.http.openai.models import chunks, served
from tests.gateway.world import World

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


async def test_models(world: World, client: AsyncOpenAI) -> None:
    """Those of the tenant alone, by names with slashes and colons, and by refs."""
    served(world, name="acme/tiny:8b")
    served(world, name="rivals/own", tenant="rival")
    listed = [model async for model in await client.models.list()]
    one = await client.models.retrieve("acme/tiny:8b")
    by_ref = await client.models.retrieve("shop.tells")

    assert [model.id for model in listed] == ["acme/tiny:8b"]
    assert (one.id, one.owned_by, one.object) == ("acme/tiny:8b", "acme", "model")
    assert by_ref.id == "shop.tells"
    for name in ("rivals/own", "rival:shop.tells", "nobodys/own", "shop.none", "x" * 5_000):
        with pytest.raises(openai.NotFoundError) as refused:
            await client.models.retrieve(name)
        assert refused.value.code == "model_not_found"


async def test_anothers_model_is_as_if_it_were_not_there(world: World, client: AsyncOpenAI) -> None:
    """The same words for one that a rival has and for one that nobody has."""
    served(world, name="rivals/own", tenant="rival")
    said = []
    for name in ("rivals/own", "nobody/own"):
        with pytest.raises(openai.NotFoundError) as refused:
            await client.chat.completions.create(model=name, messages=HI)
        said.append(str(refused.value.body).replace(name, "NAME"))

    assert said[0] == said[1]
    assert not world.calls.seen
