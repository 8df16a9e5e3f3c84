"""Public keys of manifests as PEM (RFC 8410): ed25519, of 32 bytes. Pure."""

from __future__ import annotations

import binascii

PEM_BEGIN, PEM_END = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
PUBLIC_HEAD = bytes.fromhex("302a300506032b6570032100")
"""What stands before the 32 bytes of an ed25519 key in its file (RFC 8410, section 4)."""
PUBLIC_BYTES = 32


def public_key_of(text: bytes) -> bytes:
    """The 32 bytes of a public key's PEM text.

    Raises:
        ValueError: it is none.
    """
    head, _, rest = text.strip().partition(PEM_BEGIN)
    body, end, behind = rest.partition(PEM_END)
    if head or not end or behind:
        raise ValueError("expected one public key as PEM")
    data = binascii.a2b_base64(b"".join(body.split()), strict_mode=True)
    if not data.startswith(PUBLIC_HEAD) or len(data) != len(PUBLIC_HEAD) + PUBLIC_BYTES:
        raise ValueError("it is not an ed25519 key")
    return data.removeprefix(PUBLIC_HEAD)


def public_keys_of(text: bytes) -> tuple[bytes, ...]:
    """The keys of a PEM file, one behind the other; there is at least one.

    Raises:
        ValueError: there is none, or something else.
    """
    *texts, behind = text.split(PEM_END)
    if not texts or behind.strip():
        raise ValueError("it is no list of public keys as PEM")
    return tuple(public_key_of(each + PEM_END) for each in texts)


def public_pem(*keys: bytes) -> bytes:
    """The PEM file of these keys, one behind the other."""
    return b"".join(b"%s\n%s%s\n" % (PEM_BEGIN, binascii.b2a_base64(PUBLIC_HEAD + public), PEM_END) for public in keys)
