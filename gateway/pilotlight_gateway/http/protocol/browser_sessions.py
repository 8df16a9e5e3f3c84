"""What a browser sends along whichever page asks: a session's cookie, for operations that take one in place of a key,
and its holder's certificate. Both count only where no strange page can be behind the request."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Scope

SESSION_COOKIE = b"__Host-pilotlight"
"""Browsers take a cookie of such a name from a host itself alone, over TLS, for all of its paths."""
LONGEST_COOKIES = 8_192
"""Bytes of Cookie headers that are read."""
SAFE_METHODS = ("GET", "HEAD")
PREFLIGHT = "OPTIONS"
OWN_SITES = (b"same-origin", b"none")
"""Of `Sec-Fetch-Site`: a page of this very origin, or the browser's user, has sent it."""


def session_of(scope: Scope) -> bytes:
    """The value of the session's cookie; b"": there is none that counts.

    A browser sends its cookies whichever page asks: on a request that changes something one counts only if the browser
    says that a page of this very origin has sent it.
    """
    sites = [value for name, value in scope["headers"] if name == b"sec-fetch-site"]
    if scope["method"] not in SAFE_METHODS and sites != [b"same-origin"]:
        return b""
    cookies = b"; ".join(value for name, value in scope["headers"] if name == b"cookie")[:LONGEST_COOKIES]
    for each in cookies.split(b";"):
        name, _, value = each.strip().partition(b"=")
        if name == SESSION_COOKIE:
            return value
    return b""


def may_be_of_strange_page(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a browser may have sent it for a page of another origin, with the certificate of whoever looks at it.

    Other programs say neither `Sec-Fetch-Site` nor `Origin`; a browser says the second, even an old one, wherever a
    page changes something.
    """
    changes = method not in SAFE_METHODS and method != PREFLIGHT
    return any(
        (name == b"sec-fetch-site" and value not in OWN_SITES) or (changes and name == b"origin")
        for name, value in headers
    )
