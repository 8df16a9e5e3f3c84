"""Envelopes are what securesystemslib takes them for."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from securesystemslib.dsse import Envelope as StandardEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from pilotlight_core.model.supply.envelopes import (
    IN_TOTO,
    EnvelopeFault,
    bytes_of_base64,
    enveloped,
    read_envelope,
    signed_bytes,
)

CONTENT = '{"one": "ö"}'.encode()


def test_the_standard_library_verifies_them_and_refuses_changed_ones() -> None:
    """Over the type and the content together."""
    private = Ed25519PrivateKey.generate()
    data = enveloped(IN_TOTO, CONTENT, "kid", private.sign(signed_bytes(IN_TOTO, CONTENT)))
    key = SSlibKey("kid", "ed25519", "ed25519", {"public": private.public_key().public_bytes_raw().hex()})

    assert list(StandardEnvelope.from_dict(json.loads(data)).verify([key], 1)) == ["kid"]
    for field, changed in (("payloadType", "text/plain"), ("payload", "e30=")):
        with pytest.raises(VerificationError):
            StandardEnvelope.from_dict(json.loads(data) | {field: changed}).verify([key], 1)


def test_what_is_read_is_what_was_written() -> None:
    """With the bytes that the signature is over."""
    read = read_envelope(enveloped(IN_TOTO, CONTENT, "kid", b"sig"))

    assert (read.content, read.payload_type, read.signed) == (CONTENT, IN_TOTO, signed_bytes(IN_TOTO, CONTENT))
    assert (read.signatures[0].keyid, bytes_of_base64(read.signatures[0].sig)) == ("kid", b"sig")


@pytest.mark.parametrize("data", [b"", b"{}", b'{"payload": 1, "payloadType": "", "signatures": []}', b"[1]"])
def test_what_is_none_is_refused(data: bytes) -> None:
    """Whatever it is."""
    with pytest.raises(EnvelopeFault, match="it is no envelope"):
        read_envelope(data)


def test_a_payload_that_is_no_base64_is_refused() -> None:
    """When it is looked at."""
    read = read_envelope(b'{"payload": "*", "payloadType": "t", "signatures": []}')
    with pytest.raises(EnvelopeFault, match="no base64"):
        _ = read.content
