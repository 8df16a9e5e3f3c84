"""People and programs that an OpenID provider vouches for, on a whole platform: from `issuer set` to `logout`."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.command_line import run_command, start_command
from tests.fixtures.identity_provider import API, IdentityProvider
from tests.forked_command import ended
from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

ADA = "ada:acme-corp:engineers"
PAGE = re.compile(r"http://127[.]0[.]0[.]1:\S+(user_code=|/auth[?])\S+")
"""What a person opens: with a code in it, or the page of a browser's login."""


@pytest.fixture
def provider(platform: Platform, identity_provider: IdentityProvider) -> Iterator[IdentityProvider]:
    """On record, for the platform's first tenant."""
    tenant = platform.http.get("/v1/whoami").json()["tenant"]
    platform.cli(
        "issuer", "set", "corp", identity_provider.url, "--audience", API, "--client-id", "pilotlight-cli",
        "--tenant-claim", "org", "--tenant", f"acme-corp={tenant}", "--group", "engineers=invoke,read,deploy",
        "--group", "robots=invoke", "--parameter", f"resource={API}",
    )  # fmt: skip
    yield identity_provider
    platform.cli("issuer", "remove", "corp", check=False)


class Person:
    """Somebody at a machine of their own, without a key."""

    def __init__(self, home: Path, platform: Platform) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PILOTLIGHT_")}
        self.env = kept | {"PILOTLIGHT_HOME": str(home), "NO_COLOR": "1", "BROWSER": "true"}
        self.home, self.platform = home, platform

    def run(self, *words: str) -> str:
        done = run_command(words, env=self.env)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def log_in(self, provider: IdentityProvider, who: str, *words: str) -> str:
        """Run `pilotlight login`, and do on the page that it names what it says; what was printed."""
        read, write = os.pipe()
        printed: list[str] = []
        try:
            with Path(os.devnull).open("rb") as nothing:
                running = start_command(
                    ["login", self.platform.url, *words], env=self.env, cwd=self.home.parent,
                    files=(nothing.fileno(), write, write),
                )  # fmt: skip
        finally:
            os.close(write)
        with os.fdopen(read) as said:
            for line in said:
                printed.append(line)
                if found := PAGE.search(line):
                    visit = threading.Thread(target=provider.visit, args=(found[0].rstrip(","), who))
                    visit.start()
        visit.join()
        running.settimeout(60)
        assert ended(running) == 0, printed
        return printed[-1]


@pytest.mark.parametrize("words", [(), ("--browser",)], ids=["code", "browser"])
def test_a_person_logs_in_works_and_logs_out(
    platform: Platform, provider: IdentityProvider, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """With no key at all; the audit log has them by name, and in the end nothing is left."""
    ada = Person(tmp_path / "home", platform)
    assert ada.log_in(provider, ADA, *words).startswith(f"{ADA} of ")
    assert json.loads(ada.run("whoami", "--json"))["scopes"] == ["invoke", "deploy", "read"]
    ada.run("deploy", str(APPS / "calls" / "app.py"))
    assert "hello" in ada.run("call", "calls.echo", "value=hello")
    entries = json.loads(platform.cli("audit", "--operation", "deployApp", "--json").stdout)["entries"]
    assert entries[-1]["subject"] == ADA
    assert ada.run("logout") == "Logged out.\n"
    assert run_command(["whoami"], env=ada.env).returncode == 1
    assert not (ada.home / "login.json").exists()


def test_a_program_calls_until_its_issuer_is_removed(platform: Platform, provider: IdentityProvider) -> None:
    """By a token of its own; then it is nobody, also in what it had begun, within seconds."""
    platform.deploy(APPS / "calls" / "app.py")
    with platform.as_holder_of(provider.robot_token()) as robot:
        answer = robot.post("/v1/functions/calls.echo/calls", json={"input": {"value": 1}})
        assert (answer.status_code, answer.json()["output"]) == (200, 1)
        assert robot.get("/v1/apps").status_code == 403
        begun: list[httpx.Response] = []
        body = {"input": {"seconds": 60}}
        call = threading.Thread(target=lambda: begun.append(robot.post("/v1/functions/calls.naps/calls", json=body)))
        call.start()
        wait_until(lambda: any(one["running"] for one in platform.containers("calls")), "the call runs")
        platform.cli("issuer", "remove", "corp")
        call.join(10)
        assert [one.status_code for one in begun] == [401]
        refused = robot.get("/v1/whoami")
        assert (refused.status_code, refused.json()["code"]) == (401, "token_invalid")
