"""Keys by which nats-server knows who connects: ed25519, written down as all tools of NATS write them.

A seed is the secret (`SU…` of a user, `SA…` of an account), its public key begins with `U` or `A`. Who connects signs
what the server has just made up; the secret does not travel.
"""

from __future__ import annotations

import base64
import binascii
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SEED = 18 << 3
"""The first byte of a seed, whose five high bits are an `S` in base 32."""
KEY_BYTES = 32


class BadNkey(ValueError):
    """The text is no key of the kind that was expected."""


class NkeyKind(IntEnum):
    """Whose key it is: the first byte of the public one."""

    ACCOUNT = 0  # A…
    USER = 20 << 3  # U…


class Nkey:
    """A private key. `public` and `seed` are its text forms."""

    def __init__(self, private: Ed25519PrivateKey, kind: NkeyKind) -> None:
        self._private = private
        self._kind = kind
        self.public = _written(bytes([kind]) + private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls, kind: NkeyKind) -> Nkey:
        """Make a new one."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate(), kind)

    @classmethod
    def from_seed(cls, seed: str, kind: NkeyKind) -> Nkey:
        """The key of a seed.

        Raises:
            BadNkey: it is none of that kind.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        data = _read(seed, 2)
        if data[:2] != _seed_head(kind):
            raise BadNkey(f"The seed is not that of a {kind.name.lower()}.")
        return cls(Ed25519PrivateKey.from_private_bytes(data[2:]), kind)

    @property
    def seed(self) -> str:
        return _written(_seed_head(self._kind) + self._private.private_bytes_raw())

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)


def is_public_key(text: str, kind: NkeyKind) -> bool:
    """Whether it is a public key of that kind."""
    try:
        return _read(text, 1)[0] == kind
    except BadNkey:
        return False


def verify(public: str, data: bytes, signature: bytes) -> bool:
    """Whether the holder of the key has signed the bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(_read(public, 1)[1:]).verify(signature, data)
    except (BadNkey, InvalidSignature):
        return False
    return True


def _seed_head(kind: NkeyKind) -> bytes:
    return bytes([SEED | (kind >> 5), (kind & 31) << 3])


def _written(data: bytes) -> str:
    check = binascii.crc_hqx(data, 0).to_bytes(2, "little")
    return base64.b32encode(data + check).decode().rstrip("=")


def _read(text: str, head: int) -> bytes:
    """The bytes of a text form without their check, `head` of them before the key."""
    try:
        data = base64.b32decode(text + "=" * (-len(text) % 8))
    except (ValueError, TypeError):
        raise BadNkey("It is no key: expected letters and digits in base 32.") from None
    found, check = data[:-2], data[-2:]
    if len(found) != head + KEY_BYTES or binascii.crc_hqx(found, 0).to_bytes(2, "little") != check:
        raise BadNkey("It is no key: its length or its check is wrong.")
    return found
