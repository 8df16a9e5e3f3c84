"""Which keys sign manifests on a platform of several gateways: a set that the operator's own key vouches for.

Each gateway has a key of its own, which never leaves its host. The operator signs the set of their public keys, any
gateway carries it to the bus, and agents, which are given the operator's public key, believe no other set and none that
is older than one they have seen. Where the record is kept: `key_set_records`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from pilotlight_core.host.signing import BadSignature, Signer, Verifier, key_id

HEAD = b"pilotlight keys 1\n"
"""Signed before the set, so that nothing else that such a key has signed passes for one."""
MOST_KEYS = 64

PublicKey = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class KeySet(msgspec.Struct, frozen=True, kw_only=True):
    """`serial`: the later set has the greater one; the second in which it was signed."""

    serial: int
    keys: Annotated[tuple[PublicKey, ...], msgspec.Meta(min_length=1, max_length=MOST_KEYS)]

    def names(self) -> tuple[str, ...]:
        """The ids of the keys."""
        return tuple(map(key_id, self.keys))


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


def sign_keys(operator: Signer, keys: Iterable[bytes], serial: int) -> SignedKeySet:
    """Vouch for public keys."""
    data = msgspec.msgpack.encode(KeySet(serial=serial, keys=tuple(sorted(set(keys)))))
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
