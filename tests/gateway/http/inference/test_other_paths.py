"""What is not offered of the protocol's extensions."""

from __future__ import annotations

import pytest

from tests.gateway.world import World


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", "/v2/repository/index"), ("POST", "/v2/repository/models/m/load"),
        ("GET", "/v2/systemsharedmemory/status"), ("POST", "/v2/cudasharedmemory/region/r/register"),
        ("POST", "/v2/systemsharedmemory/unregister"), ("GET", "/v2/trace/setting"), ("POST", "/v2/logging"),
    ],
)  # fmt: skip
async def test_what_is_one_machines_is_not_offered(world: World, verb: str, path: str) -> None:
    """501, with a text."""
    async with world.client("") as client:
        answer = await client.request(verb, path, json={})
    assert answer.status_code == 501
    assert "is not offered" in answer.json()["error"]


async def test_what_is_nowhere_is_not_found(world: World) -> None:
    """And a wrong method of what is there is told the right one."""
    async with world.client("") as client:
        answers = [await client.get("/v2/nothing"), await client.post("/v2/health/live")]
    assert [answer.status_code for answer in answers] == [404, 405]
