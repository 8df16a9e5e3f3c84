"""Addresses of other platforms are answered with what there is here."""

from __future__ import annotations

import pytest

from pilotlight_gateway.http.protocol.peer_paths import PATHS, hint_of
from tests.gateway.world import World


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("POST", "/v1/images/generations", "chats, completions, responses, embeddings, models, files and batches"),
        ("POST", "/chat/completions", "below /v1"),
        ("GET", "/models", "below /v1"),
        ("GET", "/health", "/healthz and /readyz say how the gateway is"),
        ("POST", "/predict", "POST /v1/functions/APP.FUNCTION/calls"),
    ],
)
async def test_a_client_of_another_platform_is_told_what_there_is(
    world: World, method: str, path: str, said: str
) -> None:
    """404, in the shape that OpenAI's clients read too."""
    async with world.client() as client:
        answer = await client.request(method, path)

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert answer.json()["detail"].startswith(f"There is nothing at {path}: ")
    assert said in answer.json()["detail"]
    assert answer.json()["error"]["message"] == answer.json()["detail"]


def test_other_addresses_have_no_hint() -> None:
    """Also such as begin with the same letters."""
    assert [hint_of(path) for path in ("/v1/audiox", "/v1/nothing", "/v22", "/")] == [""] * 4


async def test_no_hint_is_about_an_address_that_there_is(world: World) -> None:
    """Once one is served its hint must go."""
    async with world.client() as client:
        document = (await client.get("/openapi.json")).json()
    assert not [path for path in document["paths"] if hint_of(path)]
    assert all(hint_of(path) for path, _ in PATHS)
