"""`pilotlight login`: at which issuer, what is kept, and what is said. Its flows have tests of their own."""

from __future__ import annotations

import json
import re
import stat
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest

from pilotlight.cli.commands.identity.login import choose_login
from pilotlight.client.login.issuer_client import WELL_KNOWN, LoginFailed
from pilotlight_core.model.api.issuer_api import LoginInfo
from tests.builders.certificates import an_authority
from tests.sdk.cli.shell import invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

CORP = LoginInfo(name="corp", url="https://login.example.com", client_id="cli", scope="openid")
LAB = LoginInfo(name="lab", url="https://lab.example.com", client_id="cli", scope="openid")
CALLER = {"tenant": "acme", "key": "oidc-corp-1", "scopes": ["invoke"], "issuer": "corp", "subject": "ada"}


@pytest.fixture
def home(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A platform that is its own issuer, which agrees at once; nobody has a key."""
    monkeypatch.delenv("PILOTLIGHT_API_KEY")
    monkeypatch.setattr("anyio.sleep", no_time)
    login = msgspec.structs.replace(CORP, url=platform.url)
    platform.will("GET", "/v1/logins", answer({"logins": [login]}))
    endpoints = {
        "issuer": platform.url, "token_endpoint": f"{platform.url}/token",
        "device_authorization_endpoint": f"{platform.url}/device", "authorization_endpoint": f"{platform.url}/auth",
    }  # fmt: skip
    platform.will("GET", WELL_KNOWN, answer(endpoints))
    code = {"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": f"{platform.url}/page", "expires_in": 60}
    platform.will("POST", "/device", answer(code))
    platform.will("POST", "/token", answer({"access_token": "t1", "refresh_token": "r1", "expires_in": 3600}))
    platform.will("GET", "/v1/whoami", answer(CALLER))
    return tmp_path / "home"


async def no_time(_: float) -> None:
    """Nobody waits."""


def test_who_logs_in_needs_no_key(platform: ScriptedPlatform, home: Path) -> None:
    """The code is shown, the login is kept for its user alone, and requests are sent with it."""
    done = invoke("login")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == f"ada of acme may invoke at {platform.url}.\n"
    assert f"Open {platform.url}/page on any device, and enter WDJB-MJHT\n" in done.stderr
    file = home / "login.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["refresh_token"] == "r1"
    assert run("whoami").startswith("ada (corp) of acme")
    assert platform.requests[-1].headers["authorization"] == "Bearer t1"
    assert run("key", "show") == "t1\n"
    assert json.loads(run("login", "--json"))["subject"] == "ada"


def test_a_login_that_gives_no_access_is_not_kept(platform: ScriptedPlatform, home: Path) -> None:
    """It would be in the way of a key."""
    platform.will("GET", "/v1/whoami", problem("no_access", "None of the groups has any scope."))
    done = invoke("login")
    assert done.exit_code == 1
    assert "operates the platform" in done.stderr
    assert not (home / "login.json").exists()


def test_a_key_in_the_environment_goes_before(
    platform: ScriptedPlatform, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said."""
    monkeypatch.setenv("PILOTLIGHT_API_KEY", "k")
    assert "goes before the login: unset it" in invoke("login", platform.url).stderr


def test_a_browser_is_opened(platform: ScriptedPlatform, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an address that every user of the machine may read; the page's own is shown, where there is no browser."""
    opened: list[str] = []

    def open_page(url: str) -> bool:
        opened.append(url)
        raise LoginFailed("enough")

    monkeypatch.setattr(webbrowser, "open", open_page)
    done = invoke("login", "--browser")
    assert done.exit_code == 1
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/start", opened[0])
    assert f"{platform.url}/auth?response_type=code" in done.stderr


def test_a_browser_in_the_terminal_holds_nothing_up(
    platform: ScriptedPlatform, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is open until its user leaves it, and meanwhile what comes back is listened for."""
    said: list[str] = []

    def open_page(url: str) -> bool:
        page = httpx.get(url).headers["location"]
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        back = httpx.get(asked["redirect_uri"], params={"code": "c", "state": asked["state"]})
        said.append(back.text)
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    assert run("login", "--browser").startswith("ada of acme")
    assert "You are logged in" in said[0]


def test_the_issuers_authorities_are_its_own(
    platform: ScriptedPlatform, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The platform's are not believed for the issuer; what is named for the issuer is kept with the login."""
    authority = an_authority(tmp_path / "ca")
    monkeypatch.setenv("PILOTLIGHT_CA_FILE", str(authority))
    run("login")
    plain = json.loads((home / "login.json").read_text())
    monkeypatch.delenv("PILOTLIGHT_CA_FILE")
    monkeypatch.chdir(tmp_path)
    run("login", "--issuer-ca-file", "ca/ca.pem")
    named = json.loads((home / "login.json").read_text())

    assert (plain["ca_file"], plain["issuer_ca_file"]) == (str(authority), "")
    assert (named["ca_file"], named["issuer_ca_file"]) == (str(authority), str(authority))
    monkeypatch.setenv("PILOTLIGHT_ISSUER_CA_FILE", str(tmp_path / "none.pem"))
    assert "PILOTLIGHT_ISSUER_CA_FILE" in invoke("login").stderr


def test_a_choice_is_asked_for() -> None:
    """Among several; a name that is none says which there are."""
    assert choose_login((CORP,), "", "u") == choose_login((LAB, CORP), "corp", "u") == CORP
    for logins, name, said in (
        ((), "", "no issuer on record"),
        ((CORP, LAB), "", "--issuer, of corp, lab"),
        ((CORP, LAB), "x", "it knows corp, lab"),
    ):
        with pytest.raises(LoginFailed, match=said):
            choose_login(logins, name, "https://gpu.example.com")


def test_without_a_platform_there_is_no_login(
    platform: ScriptedPlatform, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PILOTLIGHT_URL")
    done = invoke("login")
    assert done.exit_code == 1
    assert "pilotlight login https" in done.stderr
