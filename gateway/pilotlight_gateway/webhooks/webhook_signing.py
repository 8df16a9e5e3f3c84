"""Signatures of Standard Webhooks 1.0.0 (symmetric), which prove the sender and time of a delivery.

    webhook-id: msg_…          the same at every attempt
    webhook-timestamp: …       unix seconds of this attempt
    webhook-signature: v1,… v1,…     base64 of HMAC-SHA256(secret, "{id}.{timestamp}.{body}"), one for each secret

While a secret is being replaced both sign.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable

from pilotlight_core.model.api.webhook_api import SigningSecret

PREFIX = "whsec_"
SECRET_BYTES = 32
"""The specification allows 24 to 64."""
SECRETS_AT_MOST = 4
"""The current one and those that are being replaced."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def key_of(secret: str) -> bytes:
    """The HMAC key in a secret.

    Raises:
        ValueError: `secret` is malformed.
    """
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"not a signing secret: {error}") from None


def signing(secrets: Iterable[SigningSecret], at: float) -> tuple[SigningSecret, ...]:
    """The secrets that are valid at the unix second `at`."""
    return tuple(secret for secret in secrets if secret.expires_at is None or at < secret.expires_at)


def rotated(old: tuple[SigningSecret, ...], fresh: str, at: float, overlap: float) -> tuple[SigningSecret, ...]:
    """The secrets after a rotation: `fresh`, and the former one for `overlap` more seconds."""
    kept = (
        SigningSecret(value=secret.value, expires_at=at + overlap if secret.expires_at is None else secret.expires_at)
        for secret in old
    )
    return (SigningSecret(value=fresh), *signing(kept, at))[:SECRETS_AT_MOST]


def sign(secret: str, id: str, timestamp: int, body: bytes) -> str:  # noqa: A002 - what the header calls it
    """A signature with its version prefix."""
    digest = hmac.digest(key_of(secret), b"%s.%d.%s" % (id.encode(), timestamp, body), hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def signed_headers(secrets: Iterable[SigningSecret], id: str, at: float, body: bytes) -> dict[str, str]:  # noqa: A002
    """The headers of an attempt at the unix second `at`."""
    timestamp = int(at)
    signatures = (sign(secret.value, id, timestamp, body) for secret in signing(secrets, at))
    return {
        "webhook-id": id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }
