"""The page of logging in."""

from __future__ import annotations

from pilotlight_gateway.dashboard.login_pages import login_body, message_body


def test_a_key_is_asked_for_unless_a_link_has_a_code() -> None:
    """Then a button is enough; refusals are read aloud."""
    assert 'type="password" autocomplete="current-password"' in login_body()
    linked = login_body("pl_login_x")
    assert "password" not in linked
    assert 'name="code" value="pl_login_x"' in linked
    assert '<p class="sentence bad" role="alert">&lt;no&gt;</p>' in login_body("", "<no>")


def test_a_sentence_says_where_to_go() -> None:
    """By whether somebody is logged in."""
    assert 'href="/ui/login"' in message_body("<x>", logged_in=False)
    assert 'href="/ui/overview"' in message_body("x", logged_in=True)
    assert "&lt;x&gt;" in message_body("<x>", logged_in=False)


def test_a_page_that_is_asked_for_again_says_so_to_the_browser() -> None:
    assert 'http-equiv="refresh"' in message_body("x", logged_in=True, again=True)
    assert "refresh" not in message_body("x", logged_in=True)
