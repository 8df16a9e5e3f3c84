"""The application: every operation at its path, for its method alone, and the document of them all."""

from __future__ import annotations

from collections import defaultdict

import msgspec
import pytest

from pilotlight_gateway.http.app import document_of
from pilotlight_gateway.http.routes import OPERATIONS
from tests.gateway.world import World

BY_PATH: dict[str, set[str]] = defaultdict(set)
for _operation in OPERATIONS:
    BY_PATH[_operation.path].add(_operation.method)


@pytest.mark.parametrize("path", sorted(BY_PATH))
async def test_a_path_takes_its_methods_and_names_them(world: World, path: str) -> None:
    """405 for any other, with those that there are; HEAD goes where GET does."""
    taken = BY_PATH[path] | ({"HEAD"} if "GET" in BY_PATH[path] else set())
    concrete = path
    for name in ("ref", "id", "app", "sha256", "tenant", "function", "tier", "grantee", "batch", "delivery"):
        concrete = concrete.replace(f"{{{name}}}", "x")
    async with world.client("") as client:
        refused = await client.request("PATCH" if "PATCH" not in taken else "TRACE", concrete)
        answers = {method: (await client.request(method, concrete)).status_code for method in taken}

    assert refused.status_code == 405
    assert {name.strip() for name in refused.headers["allow"].split(",")} == taken
    assert 405 not in answers.values()


async def test_what_is_nowhere_is_not_found(world: World) -> None:
    """As a problem, not as Starlette would say it."""
    async with world.client() as client:
        answer = await client.get("/v1/nowhere")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_the_document_is_made_once() -> None:
    """It takes longer than everything else of an application; part of the operations have one of their own."""
    assert document_of() is document_of(OPERATIONS)
    part = msgspec.json.decode(document_of(OPERATIONS[:1]))
    assert list(part["paths"]) == [OPERATIONS[0].path]
