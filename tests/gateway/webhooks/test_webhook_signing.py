"""Signatures, checked by verifiers that others wrote."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from pilotlight_core.model.api.webhook_api import SigningSecret
from pilotlight_gateway.webhooks.webhook_events import event_body
from pilotlight_gateway.webhooks.webhook_signing import key_of, new_secret, rotated, signed_headers, signing

ID = "msg_0123456789abcdef0123456789abcdef"
BODY = event_body("job.succeeded", 1_790_000_000.0, {"id": "call_x", "note": "ü"})


def headers_of(*secrets: SigningSecret, body: bytes = BODY, at: float | None = None) -> dict[str, str]:
    return signed_headers(secrets, ID, time.time() if at is None else at, body)


def accepted_by_standard_webhooks(secret: str, headers: dict[str, str], body: bytes = BODY) -> bool:
    try:
        Webhook(secret).verify(body, headers)
    except WebhookVerificationError:
        return False
    return True


def accepted_by_openai(secret: str, headers: dict[str, str], body: bytes = BODY) -> bool:
    import openai

    with openai.OpenAI(api_key="none", webhook_secret=secret) as client:
        try:
            client.webhooks.verify_signature(body, headers)
        except openai.InvalidWebhookSignatureError:
            return False
    return True


VERIFIERS = pytest.mark.parametrize("accepted", [accepted_by_standard_webhooks, accepted_by_openai])


@VERIFIERS
def test_a_delivery_is_accepted_and_a_changed_one_is_not(accepted: object) -> None:
    """Body, id, time and secret are all signed."""
    assert callable(accepted)
    secret = new_secret()
    headers = headers_of(SigningSecret(value=secret))

    assert accepted(secret, headers)
    assert not accepted(new_secret(), headers)
    assert not accepted(secret, headers, BODY.replace(b"call_x", b"call_y"))
    assert not accepted(secret, headers | {"webhook-id": ID.replace("0", "1")})
    assert not accepted(secret, headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)})


@VERIFIERS
def test_an_old_delivery_is_refused(accepted: object) -> None:
    """What somebody recorded and sends again later."""
    assert callable(accepted)
    secret = new_secret()

    assert not accepted(secret, headers_of(SigningSecret(value=secret), at=time.time() - 3_600))


@VERIFIERS
def test_while_a_secret_is_rotated_both_are_good(accepted: object) -> None:
    """A receiver may change over whenever it likes within the overlap; afterwards the old one signs no more."""
    assert callable(accepted)
    old, fresh, at = new_secret(), new_secret(), time.time()
    secrets = rotated((SigningSecret(value=old),), fresh, at, 60.0)

    assert accepted(old, headers_of(*secrets, at=at))
    assert accepted(fresh, headers_of(*secrets, at=at))
    later = signed_headers(secrets, ID, at + 61.0, BODY)
    assert len(later["webhook-signature"].split()) == 1
    assert accepted(fresh, later)
    assert not accepted(old, later)


@given(st.lists(st.floats(min_value=0, max_value=1_000), max_size=12))
def test_rotations_keep_one_present_secret_and_few_others(overlaps: list[float]) -> None:
    """However often it is rotated, and with whatever overlaps."""
    secrets: tuple[SigningSecret, ...] = ()
    for at, overlap in enumerate(overlaps):
        fresh = f"whsec_{at}"
        secrets = rotated(secrets, fresh, float(at), overlap)

        assert secrets[0] == SigningSecret(value=fresh)
        assert all(secret.expires_at is not None for secret in secrets[1:])
        assert secrets == signing(secrets, float(at))
        assert len(secrets) <= 4


def test_a_secret_has_the_length_that_the_specification_asks_for() -> None:
    """24 to 64 bytes, and what is no base64 is refused."""
    assert 24 <= len(key_of(new_secret())) <= 64
    with pytest.raises(ValueError, match="not a signing secret"):
        key_of("whsec_?")
