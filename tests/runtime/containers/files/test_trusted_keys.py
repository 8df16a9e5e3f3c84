"""Which manifests an agent believes: of given keys, of those that a given key vouches for, and of no others."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pilotlight_core.bus import BusError
from pilotlight_core.host.foundations import Foundation, WrongFoundation
from pilotlight_core.host.key_sets import SignedKeySet, sign_keys
from pilotlight_core.host.signing import PUBLIC, BadSignature, NoKey, Signer
from pilotlight_core.model.supply.key_terms import KeyTerms
from pilotlight_runtime.containers.files.trusted_keys import TrustedKeys
from tests.builders.supply import AT
from tests.core.host.test_signing import MANIFEST

REGISTERED = Foundation(manifest_key="k")


@dataclass
class SetOfPlatform:
    """What the bus has."""

    present: SignedKeySet | None = None
    lost: bool = False

    async def read(self) -> SignedKeySet | None:
        if self.lost:
            raise BusError("no answer")
        return self.present


def make(folder: Path, name: str) -> Signer:
    return Signer.load_or_create(folder / name)


async def test_a_given_key_is_read_when_it_is_there(tmp_path: Path) -> None:
    """The gateway on this machine may make it later, and another after that."""
    keys = TrustedKeys(tmp_path / "own")
    with pytest.raises(NoKey):
        await keys.verify(make(tmp_path, "else").sign(MANIFEST))

    assert await keys.verify(make(tmp_path, "own").sign(MANIFEST)) == MANIFEST
    for file in (tmp_path / "own").iterdir():
        file.unlink()
    assert await keys.verify(make(tmp_path, "own").sign(MANIFEST)) == MANIFEST
    with pytest.raises(BadSignature, match=r"neither was it given to this agent \(--trusted-keys\)"):
        await keys.verify(make(tmp_path, "else").sign(MANIFEST))


async def test_keys_change_while_the_agent_runs(tmp_path: Path) -> None:
    """A set adds the new key, a later one drops the old; then what the old one has signed counts no more."""
    operator, old, new = (make(tmp_path, name) for name in ("operator", "old", "new"))
    platform = SetOfPlatform(sign_keys(operator, [old.public], 1))
    keys = TrustedKeys(tmp_path / "operator" / PUBLIC, platform, tmp_path / "newest")
    assert await keys.verify(old.sign(MANIFEST)) == MANIFEST
    with pytest.raises(BadSignature, match=f"signed by key {new.key_id}, which is not trusted"):
        await keys.verify(new.sign(MANIFEST))

    platform.present = sign_keys(operator, [old.public, new.public], 2)
    for signer in (old, new):
        assert await keys.verify(signer.sign(MANIFEST)) == MANIFEST
    platform.present = sign_keys(operator, [new.public], 3)
    assert await keys.verify(new.sign(MANIFEST)) == MANIFEST
    with pytest.raises(BadSignature):
        await keys.verify(old.sign(MANIFEST))


async def test_an_older_set_never_counts_again(tmp_path: Path) -> None:
    """Nor after a restart: whoever can write on the bus cannot bring a dropped key back."""
    operator, dropped, kept = (make(tmp_path, name) for name in ("operator", "dropped", "kept"))
    older, newer = sign_keys(operator, [dropped.public], 1), sign_keys(operator, [kept.public], 2)
    platform, source = SetOfPlatform(newer), tmp_path / "operator" / PUBLIC
    await TrustedKeys(source, platform, tmp_path / "newest").verify(kept.sign(MANIFEST))

    platform.present = older
    with pytest.raises(BadSignature, match="older than one of 2"):
        await TrustedKeys(source, platform, tmp_path / "newest").verify(dropped.sign(MANIFEST))


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (KeyTerms(not_after=AT), "has expired on"),
        (KeyTerms(not_before=AT + 1), "counts from"),
        (KeyTerms(revoked_at=AT, reason="stolen"), "was revoked on .*: stolen"),
    ],
)
@pytest.mark.parametrize("is_given", [False, True])
async def test_a_key_counts_within_its_terms(tmp_path: Path, terms: KeyTerms, said: str, is_given: bool) -> None:
    """Also one that was given to the node itself: the operator's word goes before the file's."""
    operator, old, new = (make(tmp_path, name) for name in ("operator", "old", "new"))
    given = tmp_path / "given.pem"
    names = ("operator", "old") if is_given else ("operator",)
    given.write_bytes(b"".join((tmp_path / name / PUBLIC).read_bytes() for name in names))
    platform = SetOfPlatform(sign_keys(operator, [old.public, new.public], 1))
    keys = TrustedKeys(given, platform, tmp_path / "newest", lambda: AT)
    assert await keys.verify(old.sign(MANIFEST)) == MANIFEST

    platform.present = sign_keys(operator, [old.public, new.public], 2, {old.public: terms})

    with pytest.raises(BadSignature, match=f"The key {old.key_id} {said}.*deploy it again"):
        await keys.verify(old.sign(MANIFEST))
    with pytest.raises(BadSignature, match=said):
        await keys.verifier(old.key_id)
    assert await keys.verify(new.sign(MANIFEST)) == MANIFEST


async def test_a_node_that_has_believed_a_set_starts_nothing_without_one(tmp_path: Path) -> None:
    """Whoever can write on the bus takes no revocation away by taking the set away, or by another set."""
    operator, own, evil = (make(tmp_path, name) for name in ("operator", "own", "evil"))
    given = tmp_path / "given.pem"
    given.write_bytes((tmp_path / "own" / PUBLIC).read_bytes())
    platform = SetOfPlatform(sign_keys(evil, [evil.public], 9))
    keys = TrustedKeys(given, platform, tmp_path / "newest", lambda: AT)
    assert await keys.verify(own.sign(MANIFEST)) == MANIFEST  # a set that nobody whom it knows vouches for is none

    given.write_bytes(given.read_bytes() + (tmp_path / "operator" / PUBLIC).read_bytes())
    platform.present = sign_keys(operator, [own.public], 1)
    assert await keys.verify(own.sign(MANIFEST)) == MANIFEST
    for gone, said in ((None, "set of keys is gone"), (sign_keys(evil, [evil.public], 9), "vouched for by")):
        platform.present = gone
        for each in (keys, TrustedKeys(given, platform, tmp_path / "newest", lambda: AT)):
            with pytest.raises(BadSignature, match=said):
                await each.verify(own.sign(MANIFEST))
    platform.lost = True
    with pytest.raises(ConnectionError, match="cannot be read"):
        await keys.verify(own.sign(MANIFEST))


async def test_nobody_else_can_vouch(tmp_path: Path) -> None:
    """Neither a gateway for another, nor a set that was changed on its way."""
    operator, gateway, evil = (make(tmp_path, name) for name in ("operator", "gateway", "evil"))
    platform = SetOfPlatform(sign_keys(evil, [evil.public], 9))
    keys = TrustedKeys(tmp_path / "operator" / PUBLIC, platform, tmp_path / "newest")
    with pytest.raises(BadSignature, match=f"vouched for by {evil.key_id}, which is not among the keys"):
        await keys.verify(evil.sign(MANIFEST))

    good, bad = sign_keys(operator, [gateway.public], 1), sign_keys(evil, [evil.public], 2)
    platform.present = SignedKeySet(root=good.root, key_set=bad.key_set, signature=bad.signature)
    with pytest.raises(BadSignature, match="is not signed by"):
        await keys.verify(evil.sign(MANIFEST))


async def test_without_the_bus_an_unknown_key_is_no_bad_signature(tmp_path: Path) -> None:
    """The container is started again elsewhere or later; nobody is told that the manifest was tampered with."""
    make(tmp_path, "operator")
    keys = TrustedKeys(tmp_path / "operator" / PUBLIC, SetOfPlatform(lost=True))
    with pytest.raises(ConnectionError, match="set of keys cannot be read"):
        await keys.verify(make(tmp_path, "gateway").sign(MANIFEST))


async def test_an_agent_joins_only_with_a_key_that_counts(tmp_path: Path) -> None:
    """The platform's one, or one that vouches for its set; else it hears at once what to do."""
    operator, gateway = make(tmp_path, "operator"), make(tmp_path, "gateway")
    registered = Foundation(manifest_key=gateway.key_id)
    both = tmp_path / "both.pem"
    both.write_bytes(b"".join((tmp_path / name / PUBLIC).read_bytes() for name in ("operator", "gateway")))
    platform = SetOfPlatform()

    assert await TrustedKeys(tmp_path / "gateway", platform).foundation_key(registered) == gateway.key_id
    assert await TrustedKeys(both, platform).foundation_key(registered) == gateway.key_id
    assert await TrustedKeys(tmp_path / "operator", platform).foundation_key(registered) == operator.key_id
    with pytest.raises(WrongFoundation, match=f"There is no public key .* is {gateway.key_id}: copy .*--trusted-keys"):
        await TrustedKeys(tmp_path / "nowhere", platform).foundation_key(registered)

    platform.present = sign_keys(operator, [gateway.public], 1)
    assert await TrustedKeys(tmp_path / "operator", platform).foundation_key(registered) == ""
    with pytest.raises(WrongFoundation, match="Give this agent the operator's public key: --trusted-keys"):
        await TrustedKeys(tmp_path / "gateway", platform).foundation_key(registered)
