"""Which keys sign manifests on a platform of several gateways: a set that the operator's own key vouches for.

Each gateway has a key of its own, which never leaves its host. The operator signs the set of their public keys, any
gateway carries it to the bus, and agents, which are given the operator's public key, believe no other set and none that
is older than one they have seen. A key may have terms: from when and until when it counts, or that it was revoked. Of
several that count one signs that does not expire, and of those the one that began to count last. Where the record is
kept: `key_set_records`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from pilotlight_core.host.signing import BadSignature, Signer, Verifier, key_id
from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms

HEAD = b"pilotlight keys 1\n"
"""Signed before the set, so that nothing else that such a key has signed passes for one."""
MOST_KEYS = 64

PublicKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class SetKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of a set that does not simply count."""

    key: PublicKey
    terms: KeyTerms


class KeySet(msgspec.Struct, frozen=True, kw_only=True):
    """`serial`: the later set has the greater one; the second in which it was signed."""

    serial: int
    keys: Annotated[tuple[PublicKey, ...], msgspec.Meta(min_length=1, max_length=MOST_KEYS)]
    """Without those that were revoked, so that agents of before, which know no terms, refuse them too."""
    terms: Annotated[tuple[SetKey, ...], msgspec.Meta(max_length=MOST_KEYS)] = ()
    """Of keys that have some, revoked ones among them."""

    def names(self) -> tuple[str, ...]:
        """The ids of the keys."""
        return tuple(map(key_id, self.keys))

    def terms_of(self, name: str) -> KeyTerms | None:
        """The terms of the key with this id; None: it is not in the set."""
        named = next((each.terms for each in self.terms if key_id(each.key) == name), None)
        return named or (ALWAYS if name in self.names() else None)

    def fault(self, name: str, at: float) -> str:
        """Why what this key has signed does not count at the unix second `at`, as a sentence; "" if it does."""
        terms = self.terms_of(name)
        if terms is None:
            return f"The key {name} is in no set of the platform's keys: its operator vouches for other ones."
        why = terms.fault(at)
        return f"The key {name} {why}." if why else ""

    def signing_order(self, names: Iterable[str], at: float) -> list[str]:
        """Those of the keys that count at `at`, the one to sign with first: it does not expire, and began last."""

        def place(name: str) -> tuple[bool, float, str]:
            terms = self.terms_of(name) or ALWAYS
            return bool(terms.not_after), -terms.not_before, name

        return sorted((name for name in names if not self.fault(name, at)), key=place)


class SignedKeySet(msgspec.Struct, frozen=True, kw_only=True):
    """`root`: the operator's public key. Whether it is the operator's, only who was given that key knows."""

    root: PublicKey
    key_set: bytes
    signature: bytes

    def read(self) -> KeySet:
        """What is in it, believed or not.

        Raises:
            BadSignature: it is none.
        """
        try:
            return msgspec.msgpack.decode(self.key_set, type=KeySet)
        except msgspec.DecodeError as error:
            raise BadSignature(f"The set of keys cannot be read: {error}.") from error

    def check(self) -> KeySet:
        """What is in it, if `root` has signed it.

        Raises:
            BadSignature.
        """
        if not Verifier(self.root).has_signed(HEAD + self.key_set, self.signature):
            raise BadSignature(f"The set of keys is not signed by {key_id(self.root)}, as it says.")
        return self.read()


def sign_keys(
    operator: Signer, keys: Iterable[bytes], serial: int, terms: Mapping[bytes, KeyTerms] | None = None
) -> SignedKeySet:
    """Vouch for public keys; those whose `terms` say that they were revoked are named as such, and do not count."""
    named = tuple(SetKey(key=key, terms=each) for key, each in sorted((terms or {}).items()) if each != ALWAYS)
    revoked = {each.key for each in named if each.terms.revoked_at}
    trusted = (set(keys) | {each.key for each in named}) - revoked
    data = msgspec.msgpack.encode(KeySet(serial=serial, keys=tuple(sorted(trusted)), terms=named))
    return SignedKeySet(root=operator.public, key_set=data, signature=operator.sign_data(HEAD + data))


def newest_set(present: SignedKeySet | None, offered: SignedKeySet | None, *, adopt: bool) -> SignedKeySet | None:
    """Which of two sets holds: the later of one operator key's; of another key's, the present one unless `adopt`.

    Raises:
        BadSignature: the offered one is another operator key's, or one of them cannot be read.
    """
    if present is None or offered is None:
        return present or offered
    if present.root == offered.root:
        return offered if offered.read().serial > present.read().serial else present
    if adopt:
        return offered
    raise BadSignature(
        f"The set of keys is signed by {key_id(offered.root)}, and that of the platform by {key_id(present.root)}."
    )
