"""The keys of several gateways, for which the operator's vouches."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pilotlight_core.host.key_sets import KeySet, SignedKeySet, newest_set, sign_keys
from pilotlight_core.host.signing import BadSignature, Signer
from pilotlight_core.model.supply.key_terms import KeyTerms


def signers(folder: Path, *names: str) -> list[Signer]:
    return [Signer.load_or_create(folder / name) for name in names]


def test_a_set_is_what_the_operator_has_signed(tmp_path: Path) -> None:
    """Each key once; whoever changes a byte, or signs in another's name, has signed nothing."""
    operator, one, other = signers(tmp_path, "operator", "one", "other")
    signed = sign_keys(operator, [one.public, other.public, one.public], 7)

    assert sorted(signed.check().names()) == sorted([one.key_id, other.key_id])
    assert signed.check().serial == 7
    forged = sign_keys(one, [one.public], 8)
    for changed in (
        msgspec.structs.replace(signed, key_set=forged.key_set),
        msgspec.structs.replace(forged, root=operator.public),
        msgspec.structs.replace(signed, signature=operator.sign_data(signed.key_set)),  # as something else was signed
    ):
        with pytest.raises(BadSignature, match="is not signed by"):
            changed.check()


@pytest.mark.parametrize("keys", [(), (b"short",), tuple(bytes([n]) * 32 for n in range(65))])
def test_what_is_no_set_is_refused_though_signed(tmp_path: Path, keys: tuple[bytes, ...]) -> None:
    """None of its keys may be missing, cut, or one too many."""
    (operator,) = signers(tmp_path, "operator")
    with pytest.raises(BadSignature, match="cannot be read"):
        sign_keys(operator, keys, 1).check()


def test_the_later_set_holds_and_another_operators_only_if_it_is_adopted(tmp_path: Path) -> None:
    """An older one is passed over; two operators are a mistake, or the key was lost."""
    operator, stranger, one = signers(tmp_path, "operator", "stranger", "one")
    older, newer = sign_keys(operator, [one.public], 1), sign_keys(operator, [one.public], 2)
    other = sign_keys(stranger, [one.public], 3)

    assert newest_set(None, None, adopt=False) is None
    assert newest_set(None, older, adopt=False) == newest_set(older, None, adopt=False) == older
    assert newest_set(older, newer, adopt=False) == newest_set(newer, older, adopt=False) == newer
    assert newest_set(newer, other, adopt=True) == other
    with pytest.raises(BadSignature, match=f"signed by {stranger.key_id}, and that of the platform by"):
        newest_set(newer, other, adopt=False)


def test_its_file_and_its_record_are_the_same(tmp_path: Path) -> None:
    """As JSON for people's hands, as MessagePack on the bus."""
    (operator,) = signers(tmp_path, "operator")
    signed = sign_keys(operator, [operator.public], 1)

    assert msgspec.json.decode(msgspec.json.encode(signed), type=SignedKeySet) == signed
    assert signed.read() == KeySet(serial=1, keys=(operator.public,))


def test_keys_of_a_set_may_have_terms_and_one_of_those_that_count_signs(tmp_path: Path) -> None:
    """Not one that expires, where there is another; of others the one that began to count last."""
    operator, old, new, gone, strange = signers(tmp_path, "operator", "old", "new", "gone", "strange")
    terms = {
        old.public: KeyTerms(not_after=30.0), new.public: KeyTerms(not_before=10.0),
        gone.public: KeyTerms(revoked_at=5.0, reason="lost"),
    }  # fmt: skip
    found = sign_keys(operator, [old.public, new.public, gone.public], 7, terms).check()
    every = [each.key_id for each in (old, new, gone, strange)]

    assert gone.key_id not in found.names()  # so that an agent of before refuses it too
    assert [found.signing_order(every, at) for at in (5.0, 10.0, 30.0)] == [
        [old.key_id], [new.key_id, old.key_id], [new.key_id],
    ]  # fmt: skip
    assert found.fault(gone.key_id, 0.0) == f"The key {gone.key_id} was revoked on 1970-01-01 00:00 UTC: lost."
    assert "in no set of the platform's keys" in found.fault(strange.key_id, 0.0)
    plain = sign_keys(operator, [old.public], 1).check()
    assert (plain.terms, plain.fault(old.key_id, 1e12)) == ((), "")
