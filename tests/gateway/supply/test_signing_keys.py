"""The key that signs is the one that the set of keys names first, without a restart."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import BusError
from pilotlight_core.host.key_sets import SignedKeySet, sign_keys
from pilotlight_core.host.signing import BadSignature, NoKey, Signer, Verifier
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_gateway.supply.key_set_book import MemoryKeySets
from pilotlight_gateway.supply.signing_keys import LoneSigner, SigningKeys
from tests.builders.supply import AT, DAY_S
from tests.core.host.test_signing import MANIFEST


def opened(folder: Path, *names: str) -> list[Signer]:
    return [Signer.load_or_create(folder, name=name) for name in names]


async def test_without_a_set_the_key_of_the_start_signs(tmp_path: Path) -> None:
    """Unless it is gone by then, or another."""
    (known,) = opened(tmp_path, "manifest_ed25519")
    keys = SigningKeys(tmp_path, known.key_id, MemoryKeySets())

    assert Verifier(known.public).verify(await keys.sign(MANIFEST)) == MANIFEST
    with pytest.raises(NoKey, match="is no longer another"):
        await SigningKeys(tmp_path, "another", MemoryKeySets()).sign(MANIFEST)


async def test_a_key_signs_from_its_day_on_and_a_retired_one_no_more(tmp_path: Path) -> None:
    """Both count for agents meanwhile."""
    operator = Signer.load_or_create(tmp_path / "operator")
    old, new = opened(tmp_path / "keys", "manifest_ed25519", "manifest_ed25519.next")
    begins = {new.public: KeyTerms(not_before=AT + DAY_S)}
    now = AT
    store = MemoryKeySets(sign_keys(operator, [old.public, new.public], 1, begins))
    keys = SigningKeys(tmp_path / "keys", old.key_id, store, lambda: now)
    assert (await keys.sign(MANIFEST)).key_id == old.key_id

    now = AT + DAY_S
    assert (await keys.sign(MANIFEST)).key_id == new.key_id

    terms = {old.public: KeyTerms(not_after=AT + 3 * DAY_S)}
    store.present = sign_keys(operator, [old.public, new.public], 2, terms)
    signature = await keys.sign_statement(b"statement")
    assert signature.key_id == new.key_id
    assert Verifier(new.public).has_signed(b"statement", signature.signature)


async def test_a_gateway_without_a_key_that_counts_signs_nothing_and_says_why(tmp_path: Path) -> None:
    """Nor one that cannot ask."""
    operator = Signer.load_or_create(tmp_path / "operator")
    old, other = opened(tmp_path / "keys", "manifest_ed25519")[0], opened(tmp_path / "else", "manifest_ed25519")[0]
    revoked = {old.public: KeyTerms(revoked_at=AT, reason="stolen")}
    store = MemoryKeySets(sign_keys(operator, [other.public], 1, revoked))
    with pytest.raises(NoKey, match=f"The key {old.key_id} was revoked on .*: stolen.*keyset new"):
        await SigningKeys(tmp_path / "keys", old.key_id, store, lambda: AT).sign(MANIFEST)

    class Lost(MemoryKeySets):
        async def read(self) -> SignedKeySet | None:
            raise BusError("no answer")

    with pytest.raises(Unavailable, match="cannot be read now"):
        await SigningKeys(tmp_path / "keys", old.key_id, Lost(), lambda: AT).sign(MANIFEST)


async def test_what_the_platform_has_signed_is_known_by_keys_that_count(tmp_path: Path) -> None:
    """Those of the set; without one those of this gateway. So nothing is signed anew that was not signed before."""
    operator = Signer.load_or_create(tmp_path / "operator")
    own, other = opened(tmp_path / "keys", "manifest_ed25519")[0], opened(tmp_path / "else", "manifest_ed25519")[0]
    store = MemoryKeySets()
    keys = SigningKeys(tmp_path / "keys", own.key_id, store, lambda: AT)
    assert await keys.verify(own.sign(MANIFEST)) == MANIFEST
    with pytest.raises(BadSignature, match=f"signed by key {other.key_id}, which this gateway does not have"):
        await keys.verify(other.sign(MANIFEST))
    with pytest.raises(BadSignature, match="does not match"):
        await keys.verify(msgspec.structs.replace(own.sign(MANIFEST), manifest=b"{}"))

    store.present = sign_keys(operator, [own.public, other.public], 1)
    assert await keys.verify(other.sign(MANIFEST)) == MANIFEST
    store.present = sign_keys(operator, [own.public], 2, {other.public: KeyTerms(revoked_at=AT, reason="stolen")})
    with pytest.raises(BadSignature, match=r"was revoked on .*: stolen"):
        await keys.verify(other.sign(MANIFEST))


async def test_a_lone_signer_signs_both(tmp_path: Path) -> None:
    """For tests, and for whoever has one key."""
    (known,) = opened(tmp_path, "manifest_ed25519")
    signer = LoneSigner(known)
    assert (await signer.sign(MANIFEST)).key_id == (await signer.sign_statement(b"")).key_id == known.key_id
    assert await signer.verify(known.sign(MANIFEST)) == MANIFEST
