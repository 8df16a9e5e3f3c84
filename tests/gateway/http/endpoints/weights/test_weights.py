"""Weights over HTTP."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.gateway.world import World

CONTENT = b"a model"
SHA = hashlib.sha256(CONTENT).hexdigest()


def body(**more: Any) -> dict[str, Any]:
    return {"parts": [{"path": "m.safetensors", "sha256": SHA, "size": len(CONTENT)}]} | more


async def test_weights_are_pushed_listed_shown_and_removed(world: World) -> None:
    """First it says what is missing."""
    async with world.client() as client:
        first = await client.put("/v1/weights/m", json=body())
        sent = await client.put(f"/v1/blobs/{SHA}", content=CONTENT)
        pushed = await client.put("/v1/weights/m", json=body())
        listed = await client.get("/v1/weights")
        digest = pushed.json()["digest"]
        shown = await client.get("/v1/weights/m", params={"digest": digest[:8]})
        removed = await client.delete("/v1/weights/m", params={"digest": digest})
        gone = await client.get("/v1/weights/m")

    assert (first.json()["missing"], sent.status_code, pushed.json()["missing"]) == ([SHA], 201, [])
    assert [one["name"] for one in listed.json()["weights"]] == ["m"]
    assert shown.json()["contents"] == [{"path": "m.safetensors", "size": len(CONTENT), "parts": 1}]
    assert shown.json()["revision"]["pushed_by"] == world.key.id
    assert (removed.json()["digests"], gone.status_code) == ([digest], 404)


@pytest.mark.parametrize(
    ("path", "params"),
    [("..", {}), ("m.n", {}), ("a b", {}), ("m", {"digest": "xyz"}), ("m", {"digest": "../../x"})],
)
async def test_names_and_digests_that_are_none_are_refused(world: World, path: str, params: dict[str, str]) -> None:
    """They become keys and paths."""
    async with world.client() as client:
        for method in ("GET", "DELETE"):
            answer = await client.request(method, f"/v1/weights/{path}", params=params)
            assert answer.status_code in (404, 405, 422)
        assert (await client.put(f"/v1/weights/{path}", json=body())).status_code in (200, 404, 405, 422)
    assert {name for _, name in world.registry.weights_records} <= {"m"}


async def test_an_empty_digest_removes_nothing(world: World) -> None:
    """A client that has lost it means one, not all of the name."""
    async with world.client() as client:
        await client.put(f"/v1/blobs/{SHA}", content=CONTENT)
        await client.put("/v1/weights/m", json=body())
        answer = await client.delete("/v1/weights/m", params={"digest": ""})
        assert (answer.status_code, answer.json()["field"]) == (422, "digest")
        assert len((await client.get("/v1/weights")).json()["weights"]) == 1


@pytest.mark.parametrize(("scope", "pushes", "lists"), [("deploy", 200, 200), ("read", 403, 200), ("invoke", 403, 403)])
async def test_who_may(world: World, scope: str, pushes: int, lists: int) -> None:
    """Readers see; deployers change."""
    async with world.client(world.add_key("acme", scope)) as client:
        assert (await client.put("/v1/weights/m", json=body())).status_code == pushes
        assert (await client.get("/v1/weights")).status_code == lists
        assert (await client.delete("/v1/weights/m")).status_code == (404 if pushes == 200 else 403)
