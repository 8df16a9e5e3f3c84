"""What a browser is told, and what is believed of it: policies, the session's cookie, and who may have sent a form."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

COOKIE = "__Host-pilotlight"
"""Browsers take a cookie of such a name from a host itself alone, over TLS or on this machine, for all of its paths."""
LONGEST_COOKIES = 8_192
FORM_BYTES = 16 * 1024
FORM_FIELDS = 32
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types pilotlight"
)
"""No markup, style or script but of files of this origin. Text never becomes either: the one policy of trusted types
that there may be trusts the address of the shared worker, which browsers want trusted, and nothing else (`live.js`)."""
PAGE_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
)
ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Of each answer."""

RequestHeaders = Iterable[tuple[bytes, bytes]]


def header_of(headers: RequestHeaders, name: bytes) -> str | None:
    """A header, if it is there once; None: it is not, or more than once."""
    found = [value for key, value in headers if key == name]
    return found[0].decode("latin-1") if len(found) == 1 else None


def session_token(headers: RequestHeaders) -> str:
    """What the session's cookie holds; "": there is none."""
    cookies = b"; ".join(value for key, value in headers if key == b"cookie")[:LONGEST_COOKIES].decode("latin-1")
    for each in cookies.split(";"):
        name, _, value = each.strip().partition("=")
        if name == COOKIE:
            return value
    return ""


def set_cookie(token: str, seconds: int) -> tuple[bytes, bytes]:
    """The header that gives a browser its session; with no seconds, that takes it away."""
    text = f"{COOKIE}={token}; Max-Age={seconds}; Path=/; Secure; HttpOnly; SameSite=Strict"
    return b"set-cookie", text.encode()


def is_of_own_page(headers: RequestHeaders) -> bool:
    """Whether an unsafe request was sent by a page of this very origin, by the browser's word.

    An old browser does not say `Sec-Fetch-Site`, but says the origin. What says neither is refused: only browsers have
    the cookie.
    """
    headers = list(headers)
    if any(key == b"sec-fetch-site" for key, _ in headers):
        return header_of(headers, b"sec-fetch-site") == "same-origin"
    origin, host = header_of(headers, b"origin"), header_of(headers, b"host")
    return bool(origin and host) and urlsplit(origin or "").netloc == host


def is_known_form(csrf: str, given: str) -> bool:
    """Whether a form came from a page of this session."""
    return hmac.compare_digest(csrf.encode(), given.encode())


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form, of which each counts once.

    Raises:
        ValueError: there are too many, or it is none.
    """
    found = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS)
    return dict(found)
