"""Of what an issuer gives, what the platform is sent, and how long it lives."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from pilotlight.client.login.issued_tokens import LIFE_S, login_of, read_claims, renewed
from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerEndpoints, LoginFailed
from pilotlight.client.login.saved_login import SavedLogin
from pilotlight_core.model.api.issuer_api import LoginInfo

INFO = LoginInfo(name="corp", url="https://login.example.com", client_id="cli", scope="openid")
ENDPOINTS = IssuerEndpoints(issuer=INFO.url, token_endpoint=f"{INFO.url}/token", revocation_endpoint=f"{INFO.url}/end")


def token_of(**claims: Any) -> str:
    return f"e30.{urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.AAAA"


def made(answer: IssuerAnswer, *, id_tokens: bool = False) -> SavedLogin:
    info = LoginInfo(name="corp", url=INFO.url, client_id="cli", scope="openid", id_tokens=id_tokens)
    return login_of(answer, info, ENDPOINTS, url="https://gpu", ca_file="ca.pem", at=1_000.0)


def test_the_access_token_is_sent() -> None:
    """For as long as both it and the answer say, by this machine's clock: an issuer may hand out one that is older."""
    found = made(IssuerAnswer(access_token=token_of(exp=60, iat=0), id_token="i", refresh_token="r", expires_in=9.0))
    assert (found.token, found.refresh_token, found.expires_at) == (token_of(exp=60, iat=0), "r", 1_009.0)
    assert made(IssuerAnswer(access_token=token_of(exp=60, iat=0), expires_in=90.0)).expires_at == 1_060.0
    assert made(IssuerAnswer(access_token=token_of(exp=60, iat=0))).expires_at == 1_060.0
    assert made(IssuerAnswer(access_token=token_of(exp=0, iat=60))).expires_at == 1_000.0
    assert (found.url, found.ca_file, found.revocation_endpoint) == ("https://gpu", "ca.pem", f"{INFO.url}/end")
    assert made(IssuerAnswer(access_token="opaque", expires_in=9.0)).expires_at == 1_009.0
    assert made(IssuerAnswer(access_token="opaque")).expires_at == 1_000.0 + LIFE_S


def test_the_id_token_is_sent_where_the_platform_takes_it() -> None:
    """It may live for less than the access token beside it."""
    found = made(IssuerAnswer(access_token="a", id_token=token_of(exp=30, iat=10), expires_in=900.0), id_tokens=True)
    assert (found.token, found.expires_at) == (token_of(exp=30, iat=10), 1_020.0)


@pytest.mark.parametrize(
    ("answer", "id_tokens"),
    [
        (IssuerAnswer(error="access_denied", error_description="no"), False),
        (IssuerAnswer(id_token="i"), False),
        (IssuerAnswer(access_token="a"), True),
        (IssuerAnswer(), False),
    ],
)
def test_what_is_no_login(answer: IssuerAnswer, id_tokens: bool) -> None:
    with pytest.raises(LoginFailed):
        made(answer, id_tokens=id_tokens)


def test_a_renewed_login_is_the_same_one() -> None:
    """With another refresh token if there is one."""
    login = made(IssuerAnswer(access_token="a", refresh_token="r1"))
    kept = renewed(login, IssuerAnswer(access_token="b", expires_in=60.0), at=2_000.0)
    assert (kept.id, kept.token, kept.refresh_token, kept.expires_at) == (login.id, "b", "r1", 2_060.0)
    assert renewed(login, IssuerAnswer(access_token="b", refresh_token="r2"), at=0.0).refresh_token == "r2"


@pytest.mark.parametrize("text", ["", "a.b.c", "e30.W10.A", "a.b", "é.é.é"])
def test_what_cannot_be_read_says_nothing(text: str) -> None:
    assert read_claims(text) == {}
