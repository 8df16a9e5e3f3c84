"""A browser's session, for operations that take one in place of a key."""

from __future__ import annotations

from starlette.types import Scope

SESSION_COOKIE = b"__Host-pilotlight"
"""Browsers take a cookie of such a name from a host itself alone, over TLS, for all of its paths."""
LONGEST_COOKIES = 8_192
"""Bytes of Cookie headers that are read."""
SAFE_METHODS = ("GET", "HEAD")


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
