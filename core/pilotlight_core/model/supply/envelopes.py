"""DSSE envelopes: bytes of a type, and signatures over both. Pure; a reader checks the signatures before it reads on.

{"payload": "<base64>", "payloadType": "application/vnd.in-toto+json", "signatures": [{"keyid": "…", "sig": "…"}]}
"""

from __future__ import annotations

import binascii
from typing import Annotated

import msgspec
from msgspec import Meta

IN_TOTO = "application/vnd.in-toto+json"
MOST_SIGNATURES = 16


class EnvelopeFault(ValueError):
    """What is wrong with an envelope, as the rest of a sentence."""


class EnvelopeSignature(msgspec.Struct, frozen=True, kw_only=True):
    keyid: str = ""
    sig: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """As it is written, in JSON."""

    payload: str
    payload_type: str
    signatures: Annotated[tuple[EnvelopeSignature, ...], Meta(max_length=MOST_SIGNATURES)]

    @property
    def content(self) -> bytes:
        """The payload's bytes. Raises EnvelopeFault."""
        return bytes_of_base64(self.payload)

    @property
    def signed(self) -> bytes:
        """What the signatures are over. Raises EnvelopeFault."""
        return signed_bytes(self.payload_type, self.content)


def signed_bytes(payload_type: str, content: bytes) -> bytes:
    """The bytes to sign: no two pairs of a type and a content have the same (`PAE` of the specification)."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(content), content)


def enveloped(payload_type: str, content: bytes, key_id: str, signature: bytes) -> bytes:
    """An envelope with one signature, as JSON."""
    made = Envelope(
        payload=base64_of(content),
        payload_type=payload_type,
        signatures=(EnvelopeSignature(keyid=key_id, sig=base64_of(signature)),),
    )
    return msgspec.json.encode(made)


def read_envelope(data: bytes) -> Envelope:
    """Raises EnvelopeFault."""
    try:
        return msgspec.json.decode(data, type=Envelope)
    except msgspec.DecodeError as error:
        raise EnvelopeFault(f"it is no envelope: {error}") from None


def base64_of(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def bytes_of_base64(text: str) -> bytes:
    """Raises EnvelopeFault."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise EnvelopeFault(f"it has what is no base64: {error}") from None
