"""`pilotlight dashboard`."""

from __future__ import annotations

import json
import webbrowser

import pytest

from pilotlight.cli.commands.seeing.dashboard import is_address
from tests.sdk.cli.shell import invoke
from tests.sdk.scripted import ScriptedPlatform, answer

CODE = f"pl_login_{43 * 'x'}"
URL = f"https://dashboard.example.com/ui/login?code={CODE}"


def session(url: str) -> dict[str, object]:
    return {"tenant": "acme", "key": "k", "scopes": ["read"], "expires_at": 1_900_000_000.0, "code": CODE, "url": url}


def test_a_link_is_printed(platform: ScriptedPlatform) -> None:
    """Alone, for a script; whose dashboard it opens goes to the other stream."""
    platform.will("POST", "/v1/sessions", answer(session(URL)))
    shown = invoke("dashboard")

    assert shown.stdout.strip() == URL
    assert "It opens the dashboard of acme once" in shown.stderr


def test_where_it_is_can_be_said(platform: ScriptedPlatform) -> None:
    """A platform that does not know is told of by name."""
    platform.will("POST", "/v1/sessions", answer(session("")))
    shown = invoke("dashboard", "--url", "https://here.example.com/", "--json")
    assert json.loads(shown.stdout)["url"] == f"https://here.example.com/ui/login?code={CODE}"

    platform.will("POST", "/v1/sessions", answer(session("")))
    shown = invoke("dashboard")
    assert shown.exit_code == 1
    assert "--dashboard-url" in shown.stderr


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_browser_opens_it_if_there_is_one(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch, is_opened: bool
) -> None:
    """Without one the link is printed, and that it was not opened."""
    opened: list[str] = []

    def open_url(url: str) -> bool:
        opened.append(url)
        return is_opened

    monkeypatch.setattr(webbrowser, "open", open_url)
    platform.will("POST", "/v1/sessions", answer(session(URL)))
    shown = invoke("dashboard", "--open")

    assert opened == [URL]
    assert (shown.exit_code, shown.stdout.strip()) == ((0, "") if is_opened else (1, URL))


def test_only_what_a_browser_opens_is_an_address() -> None:
    """No file, no script, and no address with a query of its own."""
    assert is_address("https://dashboard.example.com")
    assert not any(map(is_address, ("file:///etc/passwd", "javascript:alert(1)", "https://a.b/?code=c", "a.b")))
