"""What an issuer gives to who has logged in, and what of it the platform is sent."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any

import msgspec

from pilotlight.client.login.issuer_client import IssuerAnswer, IssuerEndpoints, LoginFailed, refusal
from pilotlight.client.login.saved_login import SavedLogin
from pilotlight_core.model.api.issuer_api import LoginInfo
from pilotlight_core.model.ids import token

LIFE_S = 300.0
"""Of a token of which nobody says how long it lives."""


def login_of(
    answer: IssuerAnswer,
    info: LoginInfo,
    endpoints: IssuerEndpoints,
    *,
    url: str,
    ca_file: str = "",
    issuer_ca_file: str = "",
    at: float,
) -> SavedLogin:
    """Return the login that an answer of the token endpoint is, at the unix second `at`.

    Raises:
        LoginFailed: it is a refusal, or has not what the platform takes.
    """
    sent, life = _token_in(answer, id_tokens=info.id_tokens)
    return SavedLogin(
        id=token(), url=url, ca_file=ca_file, issuer_ca_file=issuer_ca_file, name=info.name, issuer=info.url,
        client_id=info.client_id,
        token_endpoint=endpoints.token_endpoint, revocation_endpoint=endpoints.revocation_endpoint, token=sent,
        refresh_token=answer.refresh_token, id_tokens=info.id_tokens, expires_at=at + life,
    )  # fmt: skip


def renewed(login: SavedLogin, answer: IssuerAnswer, at: float) -> SavedLogin:
    """Return the login after a refresh; raise as `login_of`. An issuer need not give another refresh token."""
    sent, life = _token_in(answer, id_tokens=login.id_tokens)
    refresh_token = answer.refresh_token or login.refresh_token
    return msgspec.structs.replace(login, token=sent, refresh_token=refresh_token, expires_at=at + life)


def read_claims(text: str) -> dict[str, Any]:
    """Return what a token says. It is not verified: it has come from its issuer itself; {}: it cannot be read."""
    part = text.split(".")[1] if text.count(".") == 2 else ""
    try:
        return msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, Any])
    except (ValueError, msgspec.DecodeError):
        return {}


def _token_in(answer: IssuerAnswer, *, id_tokens: bool) -> tuple[str, float]:
    """Return the token that the platform takes, and the seconds that it lives."""
    if answer.error:
        raise refusal(answer)
    sent = answer.id_token if id_tokens else answer.access_token
    if not sent:
        raise LoginFailed("The issuer has given no " + ("id token." if id_tokens else "access token."))
    return sent, _life_s(read_claims(sent), answer.expires_in)


def _life_s(claims: dict[str, Any], expires_in: float | None) -> float:
    """Return for how many seconds a token is sent: the least that is said of it, whatever the clocks say."""
    ends, begins = claims.get("exp"), claims.get("iat")
    said = [] if expires_in is None else [expires_in]
    if isinstance(ends, int | float) and isinstance(begins, int | float):
        said.append(ends - begins)
    return max(0.0, min(said, default=LIFE_S))
