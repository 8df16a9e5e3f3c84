"""The document says what the routes do, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from pilotlight_core.model.errors import CODES
from pilotlight_gateway.http.routes import OPERATIONS
from pilotlight_gateway.tenancy.api_keys import SCOPES
from tests.gateway.http.protocol.test_http_exchange_edge import filled
from tests.gateway.world import World, function


@pytest.fixture
async def document(world: World) -> dict[str, Any]:
    async with world.client("") as client:
        found: dict[str, Any] = (await client.get("/openapi.json")).json()
    return found


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(inner) for inner in part.values()))
    return set().union(*(references(inner) for inner in part)) if isinstance(part, list) else set()


async def test_every_route_is_in_it_and_every_entry_is_a_route(world: World, document: dict[str, Any]) -> None:
    """Operations, and each one answers: not 404 for an address, nor 405."""
    said = {(method.upper(), path) for path, found in document["paths"].items() for method in found}
    assert said == {(operation.method, operation.path) for operation in OPERATIONS}
    async with world.client() as client:
        for method, path in said:
            answer = await client.request(method, filled(path))
            assert answer.status_code != 405
            assert answer.status_code != 404 or answer.json().get("code") != "not_found" or "{" in path


async def test_its_references_lead_somewhere(document: dict[str, Any]) -> None:
    """And its schemas are JSON Schemas."""
    schemas = document["components"]["schemas"]
    assert {ref.removeprefix("#/components/schemas/") for ref in references(document)} <= schemas.keys()
    whole = {"$defs": schemas, "components": {"schemas": schemas}}
    jsonschema_rs.Draft202012Validator(whole)


async def test_guarded_operations_say_so(document: dict[str, Any]) -> None:
    """Security scheme, scopes, and the errors that come with them."""
    for operation in OPERATIONS:
        entry = document["paths"][operation.path][operation.method.lower()]
        assert entry["security"] == ([{"key": []}] if operation.scopes else [])
        assert ("401" in entry["responses"]) == bool(operation.scopes or "unauthenticated" in operation.errors)
        for code in operation.errors:
            assert f"`{code}`" in entry["responses"][str(CODES[code].status)]["description"]


def test_the_operators_page_has_every_operation_with_its_scopes() -> None:
    """The table of docs/tenants.md is this list: whoever adds an operation, or opens one wider, changes it."""
    rows = [
        f"| `{operation.method} {operation.path}` | {', '.join(f'`{scope}`' for scope in operation.scopes) or 'open'} |"
        for operation in OPERATIONS
    ]
    page = (Path(__file__).parents[4] / "docs" / "tenants.md").read_text()

    assert page.split("| operation | scope |\n|---|---|\n")[1].strip().splitlines() == rows


def test_what_is_open_is_named() -> None:
    """Nothing else is served without a key; and only an operator's key reaches what is about all tenants."""
    opened = {operation.path for operation in OPERATIONS if not operation.scopes}
    operators = {operation.path for operation in OPERATIONS if operation.scopes == ("operator",)}

    health = {"/healthz", "/readyz", "/internal/health", "/v2", "/v2/health/live", "/v2/health/ready"}
    assert opened == {"/openapi.json", *health, "/v1/nodes/join", "/v1/logins", "/v1/sessions/exchange"}
    assert {"/v1/nodes", "/v1/tenants", "/v1/tiers"} <= operators
    assert {scope for operation in OPERATIONS for scope in operation.scopes} <= set(SCOPES)


async def test_real_answers_fit_it(world: World, document: dict[str, Any]) -> None:
    """Good ones and errors, checked by an independent validator."""
    world.deploy(function())
    components = {"components": document["components"]}
    async with world.client() as client:
        asked = [
            ("POST", "/v1/functions/shop.hello/calls", "/v1/functions/{ref}/calls", {"input": {"name": "x"}}),
            ("POST", "/v1/functions/shop.hello/calls", "/v1/functions/{ref}/calls", {}),
            ("GET", "/v1/apps", "/v1/apps", None),
            ("GET", "/v1/apps/shop", "/v1/apps/{app}", None),
            ("GET", "/v1/apps/shop/history", "/v1/apps/{app}/history", None),
            ("GET", "/v1/usage", "/v1/usage", None),
            ("GET", "/v1/keys", "/v1/keys", None),
            ("POST", "/v1/keys", "/v1/keys", {}),
            ("DELETE", "/v1/keys/nothing0", "/v1/keys/{id}", None),
        ]
        for method, path, pattern, body in asked:
            answer = await client.request(method, path, json=body)
            said = document["paths"][pattern][method.lower()]["responses"][str(answer.status_code)]
            media = answer.headers["content-type"].partition(";")[0]
            schema = said["content"][media]["schema"] | components
            jsonschema_rs.Draft202012Validator(schema).validate(answer.json())
