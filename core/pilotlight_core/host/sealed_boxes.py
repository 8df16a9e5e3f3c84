"""Boxes that only the holder of one key can open, made anew for each: what secrets travel in over the bus.

X25519 between the reader's key and one of the box's own, HKDF-SHA256, ChaCha20-Poly1305. Both keys and the context are
part of what is derived, so a box opens for nobody else and for nothing else. No key is used twice, so that the nonce
may be constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

PUBLIC_BYTES = 32
NONCE = bytes(12)


class CannotOpen(Exception):
    """The box is for another key or context, or was changed."""


class BoxReader:
    """A key for one box."""

    def __init__(self) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._private = X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def open(self, box: bytes, context: str) -> bytes:
        """What was sealed. Raises CannotOpen."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        theirs, sealed = box[:PUBLIC_BYTES], box[PUBLIC_BYTES:]
        try:
            key = _derived(self._private, theirs, theirs + self.public, context)
            return ChaCha20Poly1305(key).decrypt(NONCE, sealed, None)
        except (InvalidTag, ValueError):  # ValueError: no point of the curve, or too short
            raise CannotOpen("the answer was not sealed to this load") from None


def seal_box(public: bytes, data: bytes, context: str) -> bytes:
    """`data` for the holder of the private key of `public`. Raises ValueError: it is no key."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    own = X25519PrivateKey.generate()
    ours = own.public_key().public_bytes_raw()
    return ours + ChaCha20Poly1305(_derived(own, public, ours + public, context)).encrypt(NONCE, data, None)


def _derived(private: X25519PrivateKey, public: bytes, keys: bytes, context: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    shared = private.exchange(X25519PublicKey.from_public_bytes(public))
    info = b"pilotlight secrets 1\0" + keys + context.encode()
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(shared)
