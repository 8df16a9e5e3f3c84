"""Which session a request has, if no key."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.http.protocol.browser_sessions import LONGEST_COOKIES, may_be_of_strange_page, session_of
from pilotlight_gateway.http.protocol.http_exchange import authorization


def scope(method: str = "GET", *headers: tuple[str, str]) -> dict[str, Any]:
    return {"method": method, "headers": [(name.encode(), value.encode()) for name, value in headers]}


def test_the_authorization_header_is_there_once_or_not_at_all() -> None:
    """Of two a proxy may have checked the other one."""
    assert authorization(scope()) == b""
    assert authorization(scope("GET", ("authorization", "Bearer x"))) == b"Bearer x"
    with pytest.raises(BadInput, match="2 Authorization headers"):
        authorization(scope("GET", ("authorization", "Bearer x"), ("authorization", "Bearer y")))


@pytest.mark.parametrize(
    ("headers", "session"),
    [
        ([("cookie", "__Host-pilotlight=abc")], b"abc"),
        ([("cookie", "a=b; __Host-pilotlight=abc=; c=d")], b"abc="),
        ([("cookie", "a=b"), ("cookie", "__Host-pilotlight=abc")], b"abc"),
        ([("cookie", "pilotlight=abc; x__Host-pilotlight=abc")], b""),
        ([("cookie", "a=" + "b" * LONGEST_COOKIES + "; __Host-pilotlight=abc")], b""),
        ([], b""),
    ],
)
def test_a_session_is_one_cookie_among_others(headers: list[tuple[str, str]], session: bytes) -> None:
    """By its whole name, within what is read."""
    assert session_of(scope("GET", *headers)) == session


@pytest.mark.parametrize(
    ("method", "sites", "counts"),
    [
        ("GET", (), True), ("HEAD", ("cross-site",), True), ("POST", ("same-origin",), True), ("POST", (), False),
        ("POST", ("same-site",), False), ("DELETE", ("cross-site",), False), ("POST", ("same-origin", "none"), False),
    ],
)  # fmt: skip
def test_a_strange_page_changes_nothing_with_it(method: str, sites: tuple[str, ...], counts: bool) -> None:
    """Though the browser sends the cookie along."""
    named = scope(method, ("cookie", "__Host-pilotlight=abc"), *(("sec-fetch-site", site) for site in sites))
    assert bool(session_of(named)) is counts


@pytest.mark.parametrize(
    ("method", "headers", "strange"),
    [
        ("GET", (), False), ("POST", (), False), ("POST", (("sec-fetch-site", "none"),), False),
        ("GET", (("sec-fetch-site", "same-origin"), ("origin", "https://x")), False),
        ("OPTIONS", (("origin", "https://x"),), False),
        ("GET", (("sec-fetch-site", "cross-site"),), True), ("GET", (("sec-fetch-site", "same-site"),), True),
        ("GET", (("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")), True),
        ("GET", (("sec-fetch-site", "Same-Origin"),), True),
        ("POST", (("origin", "https://x"),), True), ("DELETE", (("origin", "null"),), True),
        ("POST", (("origin", "https://x"), ("sec-fetch-site", "same-origin")), True),
    ],
)  # fmt: skip
def test_what_no_strange_page_can_have_sent(method: str, headers: tuple[tuple[str, str], ...], strange: bool) -> None:
    """By what browsers say, old ones too; what is no word of theirs is strange."""
    asked = scope(method, *headers)
    assert may_be_of_strange_page(asked["method"], asked["headers"]) is strange
