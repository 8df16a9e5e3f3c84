"""What is believed of a browser, and what it is told."""

from __future__ import annotations

import pytest

from pilotlight_gateway.dashboard.request_rules import (
    FORM_FIELDS,
    POLICY,
    header_of,
    is_known_form,
    is_of_own_page,
    read_form,
    session_token,
    set_cookie,
)


@pytest.mark.parametrize(
    ("headers", "own"),
    [
        ([(b"sec-fetch-site", b"same-origin")], True),
        ([(b"sec-fetch-site", b"same-site"), (b"origin", b"http://h"), (b"host", b"h")], False),
        ([(b"sec-fetch-site", b"same-origin"), (b"sec-fetch-site", b"cross-site")], False),
        ([(b"origin", b"https://h:1"), (b"host", b"h:1")], True),
        ([(b"origin", b"https://h:1"), (b"host", b"h:2")], False),
        ([(b"origin", b"https://evil/h"), (b"host", b"h")], False),
        ([(b"origin", b"null"), (b"host", b"null")], False),
        ([(b"origin", b""), (b"host", b"")], False),
        ([(b"host", b"h")], False),
    ],
)
def test_a_form_is_of_an_own_page_by_the_browsers_word(headers: list[tuple[bytes, bytes]], own: bool) -> None:
    """`Sec-Fetch-Site` decides where it is; else the origin must be the host that was asked."""
    assert is_of_own_page(headers) is own


@pytest.mark.parametrize(
    ("cookies", "token"),
    [
        ([b"a=1; __Host-pilotlight=t; b=2"], "t"),
        ([b"a=1", b"__Host-pilotlight=t"], "t"),
        ([b"x__Host-pilotlight=t"], ""),
        ([b"pilotlight=t"], ""),
        ([b"x=" + b"y" * 10_000 + b"; __Host-pilotlight=t"], ""),
        ([], ""),
    ],
)
def test_the_session_is_in_one_cookie_alone(cookies: list[bytes], token: str) -> None:
    """Which no other host can have set."""
    assert session_token([(b"cookie", cookie) for cookie in cookies]) == token


def test_a_header_that_is_there_twice_counts_as_none() -> None:
    """Whoever sends two wants two readers to differ."""
    assert header_of([(b"a", b"1"), (b"a", b"1")], b"a") is None
    assert header_of([(b"a", b"1")], b"a") == "1"


def test_the_policy_lets_no_markup_and_no_script_in() -> None:
    """Nothing but files of this origin, in no frame; text never becomes script."""
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    for name in ("script-src", "style-src", "img-src", "connect-src", "worker-src", "form-action"):
        assert rules[name] == "'self'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in POLICY


def test_a_cookie_is_taken_away_by_an_empty_one() -> None:
    """Under the same name and path."""
    name, value = set_cookie("", 0)
    assert name == b"set-cookie"
    assert value == b"__Host-pilotlight=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Strict"


def test_forms_are_read_within_bounds() -> None:
    """Of two fields with one name the last counts."""
    assert read_form(b"a=1&b=&a=%3C2%3E") == {"a": "<2>", "b": ""}
    for bad in (b"\xff", b"a=1&" * (FORM_FIELDS + 1)):
        with pytest.raises(ValueError):
            read_form(bad)
    assert is_known_form("ab", "ab")
    assert not is_known_form("ab", "ä")
