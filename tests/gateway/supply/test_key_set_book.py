"""An operator's set is published if it is later, and kept versions outlive the key that signed them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pilotlight_core.host.key_sets import KeySet, sign_keys
from pilotlight_core.host.signing import Signer, Verifier
from pilotlight_core.model.errors import BadInput, Conflict
from pilotlight_core.model.spec import SignedManifest
from pilotlight_core.model.supply.envelopes import bytes_of_base64, read_envelope
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_gateway.supply.key_set_book import MemoryKeySets, VersionSigner, publish_key_set
from pilotlight_gateway.supply.signing_keys import LoneSigner
from tests.builders.supply import AT, BASE
from tests.gateway.deploys.test_deployer import ACME, request, upload
from tests.gateway.world import World, function


def signer() -> Signer:
    return Signer(Ed25519PrivateKey.generate())


async def test_a_later_set_of_the_same_operator_is_published(tmp_path: Path) -> None:
    """An older one, a forged one, and another operator's are not."""
    operator, other, key = (Signer.load_or_create(tmp_path / name) for name in ("operator", "other", "key"))
    store = MemoryKeySets()
    first, second = sign_keys(operator, [key.public], 1), sign_keys(operator, [key.public], 2)

    assert (await publish_key_set(store, second)).serial == 2
    assert (await publish_key_set(store, second)).serial == 2
    with pytest.raises(Conflict, match="is of 1, and the platform's is of 2, which is later"):
        await publish_key_set(store, first)
    with pytest.raises(Conflict, match="--adopt manifest_key"):
        await publish_key_set(store, sign_keys(other, [key.public], 3))
    with pytest.raises(BadInput, match="is not signed by"):
        await publish_key_set(store, msgspec.structs.replace(second, signature=b"x" * 64))
    assert store.present == second


async def test_versions_are_signed_again_with_their_documents(world: World) -> None:
    """Page by page; their ids stay, and what the new key has signed verifies."""
    world.services.inventories.bases["default"] = BASE
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", function("a"), function("b")))
    old, new, operator = world.signer, signer(), signer()
    keys = sign_keys(operator, [old.public, new.public], 1).check()
    again = VersionSigner(registry=world.registry, blobs=world.blobs, signer=LoneSigner(new))
    ids = set(world.registry.versions)

    first = await again.sign_again(keys, "", 1, AT)
    second = await again.sign_again(keys, first.next, 1, AT)
    third = await again.sign_again(keys, second.next, 10, AT)

    assert [(one.looked_at, one.signed) for one in (first, second, third)] == [(1, 1), (1, 1), (0, 0)]
    assert (await again.sign_again(keys, "", 10, AT)).signed == 0
    assert set(world.registry.versions) == ids
    for version in world.registry.versions.values():
        signed = msgspec.msgpack.decode(await world.blobs.read("acme", version.manifest_sha256), type=SignedManifest)
        assert Verifier(new.public).verify(signed).function == version.function
        assert version.evidence is not None
        envelope = read_envelope(await world.blobs.read("acme", version.evidence.statement))
        assert envelope.signatures[0].keyid == new.key_id
        assert Verifier(new.public).has_signed(envelope.signed, bytes_of_base64(envelope.signatures[0].sig))


async def test_what_a_revoked_key_has_signed_is_not_signed_again(world: World) -> None:
    """Nor what was changed, or is gone: each is named, and the others go on."""
    await upload(world, b"one")
    await world.services.deployer.deploy(ACME, "shop", request(b"one", function("a"), function("b"), function("c")))
    old, new, operator = world.signer, signer(), signer()
    again = VersionSigner(registry=world.registry, blobs=world.blobs, signer=LoneSigner(new))
    revoked: KeySet = sign_keys(operator, [new.public], 1, {old.public: KeyTerms(revoked_at=AT, reason="x")}).check()

    done = await again.sign_again(revoked, "", 10, AT)
    assert (done.signed, [each.ref for each in done.refused]) == (
        0, [version.ref for _, version in sorted(world.registry.versions.items())],
    )  # fmt: skip
    assert "was revoked on" in done.refused[0].why
    assert "Deploy it again" in done.refused[0].why

    one, two, _ = sorted(world.registry.versions)
    del world.blobs.kept["acme", world.registry.versions[one].manifest_sha256]
    damaged = await world.blobs.read("acme", world.registry.versions[two].manifest_sha256)
    digest = hashlib.sha256(damaged[:-1]).hexdigest()
    await world.blobs.put("acme", digest, damaged[:-1])
    world.registry.versions[two] = msgspec.structs.replace(world.registry.versions[two], manifest_sha256=digest)
    both = sign_keys(operator, [new.public, old.public], 1).check()
    done = await replace(again).sign_again(both, "", 10, AT)
    assert (done.signed, {each.version for each in done.refused}) == (1, {one, two})
