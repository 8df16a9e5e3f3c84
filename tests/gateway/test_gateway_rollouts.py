"""A gateway's part in rollouts; the whole of it is in tests/system/test_rollouts.py."""

from __future__ import annotations

import msgspec

from pilotlight_gateway.gateway_rollouts import why_refused
from tests.builders.supply import AT, signing_key
from tests.gateway.http.endpoints.rollouts.test_rollbacks import deploy
from tests.gateway.rollouts.kept_rollout import rollout
from tests.gateway.supply.test_supply_desk import SupplyWorld
from tests.gateway.world import World


async def test_a_new_version_whose_key_was_revoked_since_may_not_run(world: World) -> None:
    """Whether a policy asks for signatures or not: none of its containers would start."""
    signer, shop = signing_key(), SupplyWorld(world)
    await shop.trust(signer)
    shop.sign(signer)
    version = await shop.version()
    registry, supply, now = world.registry, world.services.supply.desk, rollout(canary={"hello": version.id})
    assert await why_refused(registry, supply, now, AT) == ""
    await shop.trust(signer, revoked_at=AT, reason="stolen")

    said = await why_refused(registry, supply, now, AT)

    assert said.startswith("No container of shop.hello@v1 starts: The signature of code")
    assert said.endswith("was revoked on 2026-09-21 14:13 UTC: stolen.")


async def test_what_policies_say_now_is_asked_of_the_new_versions(world: World) -> None:
    """A version, or its manifest, may be gone too."""
    async with world.client() as client:
        version = (await deploy(client, b"one"))["functions"][0]["version_id"]
    registry, supply = world.registry, world.services.supply.desk
    now = rollout(canary={"hello": version})
    assert await why_refused(registry, supply, now, 5.0) == ""
    assert "not kept" in await why_refused(registry, supply, rollout(), 5.0)
    record = registry.versions[version]
    registry.versions[version] = msgspec.structs.replace(record, manifest_sha256="0" * 64)
    assert "deleted" in await why_refused(registry, supply, now, 5.0)
