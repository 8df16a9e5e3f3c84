"""A function describes itself, with an example that works."""

from __future__ import annotations

import json
import shlex
from typing import Any

import jsonschema_rs
import pytest

from pilotlight_core.model.spec import MethodSpec
from tests.gateway.world import World, function, generator

NODE = {"$ref": "#/$defs/Node"}
DEEP = MethodSpec(
    name="grow",
    attribute="grow",
    input_schema={
        "type": "object",
        "properties": {"tree": NODE, "depth": {"type": "integer", "minimum": 3}},
        "required": ["tree", "depth"],
        "$defs": {"Node": {"type": "object", "properties": {"next": {"anyOf": [{"type": "null"}, NODE]}}}},
    },
    output_schema={"type": "string"},
)


async def described(world: World, ref: str) -> dict[str, Any]:
    async with world.client() as client:
        answer = await client.get(f"/v1/functions/{ref}/openapi.json")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_the_curl_line_calls_the_function(world: World) -> None:
    """Its address, headers and body are what the gateway takes."""
    world.deploy(function())
    document = await described(world, "shop.hello")
    ((path, entry),) = document["paths"].items()
    words = shlex.split(entry["post"]["x-codeSamples"][0]["source"].replace("$PILOTLIGHT_API_KEY", str(world.key)))
    headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")

    async with world.client("") as client:
        answer = await client.post(words[-1], content=words[words.index("-d") + 1], headers=headers)

    assert answer.status_code == 200, answer.text
    assert words[-1] == "http://gateway" + path
    assert document["info"] == {"title": "shop.hello", "version": "v1"}


@pytest.mark.parametrize(
    "method", [DEEP, MethodSpec(name="", attribute="f"), generator(output_schema={"type": "string"})]
)
async def test_examples_fit_the_schema_that_stands_beside_them(world: World, method: MethodSpec) -> None:
    """Also with recursive definitions, several levels down in the document."""
    world.deploy(function("f", method))
    document = await described(world, "shop.f")
    content = next(iter(document["paths"].values()))["post"]["requestBody"]["content"]["application/json"]

    validator = jsonschema_rs.Draft202012Validator(content["schema"] | {"components": document["components"]})
    for example in content["examples"].values():
        validator.validate(example["value"])


async def test_a_real_answer_fits_it(world: World) -> None:
    """The document's 200 is what comes."""
    method = MethodSpec(name="", attribute="f", output_schema={"type": "object"})
    world.deploy(function("f", method))
    document = await described(world, "shop.f")
    schema = next(iter(document["paths"].values()))["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    async with world.client() as client:
        answer = await client.post("/v1/functions/shop.f/calls", content=b"{}")

    validator = jsonschema_rs.Draft202012Validator(schema | {"components": document["components"]})
    validator.validate(json.loads(answer.text))


async def test_several_methods_are_all_described(world: World) -> None:
    """One example each; calls name the method."""
    world.deploy(function("math", DEEP, MethodSpec(name="zero", attribute="zero"), is_class=True))
    document = await described(world, "shop.math@v1")
    content = next(iter(document["paths"].values()))["post"]["requestBody"]["content"]["application/json"]

    assert content["examples"].keys() == {"grow", "zero"}
    assert [part["properties"]["method"]["const"] for part in content["schema"]["anyOf"]] == ["grow", "zero"]


async def test_a_foreign_function_is_not_described(world: World) -> None:
    """It does not exist for others."""
    world.deploy(function())
    async with world.client(world.add_key("rival", "read")) as client:
        assert (await client.get("/v1/functions/shop.hello/openapi.json")).status_code == 404
