"""Keys over HTTP: a tenant's own, and the platform's set, which its operator publishes."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from pilotlight_core.host.key_sets import sign_keys
from pilotlight_core.host.signing import Signer
from pilotlight_core.model.supply.key_terms import KeyTerms
from tests.builders.supply import AT, BASE, DAY_S, signing_key
from tests.gateway.deploys.test_deployer import ACME, request, upload
from tests.gateway.world import World, function

KEYS = "/v1/trusted-keys"


async def test_a_key_is_put_on_record_and_revoked(world: World) -> None:
    """Under its tenant alone."""
    signer = signing_key()
    async with world.client() as client:
        made = (await client.put(f"{KEYS}/release", json={"pem": signer.pem})).json()
        assert (made["name"], made["counts"], made["added_by"]) == ("release", True, world.key.id)
        assert (await client.get(KEYS)).json()["keys"] == [made]
        gone = (await client.post(f"{KEYS}/release/revoke", json={"reason": "stolen"})).json()
        assert (gone["counts"], gone["reason"]) == (False, "stolen")
        assert gone["why"].startswith("was revoked on")
        assert (await client.put(f"{KEYS}/release", json={"pem": signer.pem})).status_code == 409
        assert (await client.post(f"{KEYS}/other/revoke", json={})).status_code == 404
        late = {"pem": signing_key().pem, "not_after": 5.0}
        assert (await client.put(f"{KEYS}/late", json=late)).status_code == 422
    async with world.client(world.add_key("rival", "admin")) as rival:
        assert (await rival.get(KEYS)).json() == {"keys": []}
    async with world.client(world.add_key("acme", "deploy")) as deployer:
        assert (await deployer.put(f"{KEYS}/mine", json={"pem": signing_key().pem})).status_code == 403


async def test_an_operator_publishes_a_set_and_signs_versions_again(world: World, tmp_path: Path) -> None:
    """Without a set there is one key; with one each key says whether it counts."""
    world.services.inventories.bases["default"] = BASE
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", function()))
    operator, old = Signer.load_or_create(tmp_path / "operator"), Signer.load_or_create(tmp_path / "old")
    terms = {
        old.public: KeyTerms(revoked_at=AT, reason="lost"),
        world.signer.public: KeyTerms(not_after=time.time() + DAY_S),
    }
    signed = sign_keys(operator, [world.signer.public], 5, terms)
    async with world.client() as tenant, world.client(world.operator) as client:
        assert (await tenant.get("/v1/signing-keys")).status_code == 403
        (only,) = (await client.get("/v1/signing-keys")).json()["keys"]
        assert (only["id"], only["signs_here"]) == (world.signer.key_id, True)
        assert (await client.post("/v1/signing-keys/resign", json={})).status_code == 409

        shown = (await client.put("/v1/signing-keys", content=msgspec.json.encode(signed))).json()
        assert (shown["serial"], shown["operator"]) == (5, operator.key_id)
        states = {each["id"]: (each["signs_here"], each["why"].split(" on ")[0]) for each in shown["keys"]}
        assert states == {
            world.signer.key_id: (True, ""), old.key_id: (False, "was revoked"),
        }  # fmt: skip
        done = (await client.post("/v1/signing-keys/resign", json={"most": 5})).json()
        assert (done["looked_at"], done["signed"], done["next"]) == (1, 0, "")
        forged = msgspec.structs.replace(signed, signature=b"x" * 64)
        assert (await client.put("/v1/signing-keys", content=msgspec.json.encode(forged))).status_code == 422
