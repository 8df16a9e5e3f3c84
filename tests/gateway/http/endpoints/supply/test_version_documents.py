"""A tenant reads what its own versions are made of, and nobody else's."""

from __future__ import annotations

from pathlib import Path

import httpx

from pilotlight_core.model.supply.policies import Policy, PolicyMode, Severity
from pilotlight_gateway.supply.osv_file import OsvFile
from pilotlight_gateway.supply.policy_book import set_policy
from tests.builders.supply import AT, BASE
from tests.core.model.supply.test_sbom import judge
from tests.gateway.deploys.test_deployer import ACME, request, upload
from tests.gateway.supply.test_osv_file import YAML, export
from tests.gateway.world import World, function

REF = "/v1/functions/shop.hello"


async def deployed(world: World) -> None:
    world.services.inventories.bases["default"] = BASE
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", function()))


async def test_the_bill_of_materials_is_valid_and_the_provenance_an_envelope(world: World) -> None:
    """By ref, and by version."""
    await deployed(world)
    async with world.client() as client:
        sbom = await client.get(f"{REF}@v1/sbom")
        statement = await client.get(f"{REF}/provenance")

    assert sbom.headers["content-type"] == "application/vnd.cyclonedx+json"
    assert judge().is_valid(sbom.json())
    assert sbom.json()["metadata"]["component"]["name"] == "shop.hello"
    assert statement.headers["content-type"] == "application/vnd.in-toto+json"
    assert statement.json()["payloadType"] == "application/vnd.in-toto+json"


async def test_a_verdict_is_what_policies_say_now(world: World, tmp_path: Path) -> None:
    """With the age of what is known."""
    world.services.osv = OsvFile(export(tmp_path / "all.zip", YAML))
    await deployed(world)
    policy = Policy(mode=PolicyMode.ENFORCE, deny_packages=("numpy",), vulnerabilities=Severity.LOW)
    await set_policy(world.registry.policies, "acme", policy, by="k", at=AT)
    async with world.client() as client:
        said = (await client.get(f"{REF}/verdict")).json()

    assert (said["version"], said["allowed"], said["policies"]) == ("shop.hello@v1", False, {"tenant": 1})
    assert [(each["rule"], each["component"]) for each in said["findings"]] == [("package", "pkg:pypi/numpy@2.1.0")]
    assert said["data_age_s"] > 0
    assert "renew the OSV file" in said["warnings"][0]


async def test_what_is_not_there_is_said_and_what_is_anothers_not_shown(world: World) -> None:
    """A version of before, a document that is gone or is another one by now, and a function that is shared."""
    await deployed(world)
    (version,) = world.registry.versions.values()
    assert version.evidence is not None

    async def problem(path: str, client: httpx.AsyncClient) -> tuple[int, str]:
        answer = await client.get(path)
        return answer.status_code, answer.json()["detail"]

    async with world.client(world.add_key("rival", "read")) as rival:
        assert (await problem("/v1/functions/acme:shop.hello/sbom", rival))[0] == 404
    world.blobs.kept["acme", version.evidence.sbom] = b"{}"
    async with world.client() as client:
        status, detail = await problem(f"{REF}/sbom", client)
        assert (status, "is damaged in the blob store" in detail) == (404, True)
        del world.blobs.kept["acme", version.evidence.sbom]
        status, detail = await problem(f"{REF}/sbom", client)
        assert (status, "not stored any more" in detail) == (404, True)
        world.deploy(function("older"))
        status, detail = await problem("/v1/functions/shop.older/provenance", client)
        assert (status, "deploy it again" in detail) == (404, True)
