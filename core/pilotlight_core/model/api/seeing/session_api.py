"""The bodies of the HTTP API about sessions: logins in a browser, which stand for an API key for some hours."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request

SESSION_PATTERN = r"^pl_session_[A-Za-z0-9_-]{43}$"
CODE_PATTERN = r"^pl_login_[A-Za-z0-9_-]{43}$"


class SessionRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/sessions`."""

    link: bool = False
    """Whether to make the code of a link in place of a session: whoever follows it first gets one."""


class CodeExchange(Request, frozen=True, kw_only=True):
    """`POST /v1/sessions/exchange`."""

    code: Annotated[str, Meta(pattern=CODE_PATTERN)]


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/sessions/current`: whose session it is."""

    tenant: str
    key: str
    """The id of the API key that opened it."""
    scopes: tuple[str, ...]
    expires_at: float
    """The unix second at which it ends; half an hour without a request ends it earlier."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `POST /v1/sessions` and `…/exchange`: only here the token is shown, or the code."""

    tenant: str
    key: str
    scopes: tuple[str, ...]
    expires_at: float
    token: str = ""
    code: str = ""
    url: str = ""
    """Of a code, the link that opens the dashboard; "": the platform does not say where its dashboard is."""
