"""Commands about secrets: where values come from, and what is printed."""

from __future__ import annotations

import getpass
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from pilotlight.cli.main import app
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

VALUE = "a value that nobody sees"
SECRET: dict[str, Any] = {
    "name": "token", "number": 2, "created_at": 0.0, "changed_at": 0.0, "changed_by": "k1",
    "functions": ["shop.hello"],
}  # fmt: skip


def run(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["secret", *words], input=given)


@pytest.fixture(autouse=True)
def _there(platform: ScriptedPlatform) -> None:
    platform.will("PUT", "/v1/secrets/token", answer(SECRET))
    platform.will("DELETE", "/v1/secrets/token", Answer(status=204))
    platform.will("GET", "/v1/secrets", answer({"secrets": [SECRET | {"changed_at": time.time() - 7_300}]}))


def sent(platform: ScriptedPlatform) -> list[Any]:
    return [request.json["value"] for request in platform.requests]


def test_a_value_comes_from_stdin(platform: ScriptedPlatform) -> None:
    """Of one line the end is left out; what is printed has no value."""
    done = run("set", "token", given=f"{VALUE}\n")
    again = run("set", "token", "--file", "-", "--json", given=VALUE)

    assert done.stdout == "Set token, value 2; containers of shop.hello get it in turn.\n"
    assert msgspec.json.decode(again.stdout) == SECRET
    assert sent(platform) == [VALUE, VALUE]
    assert VALUE not in done.output + again.output


def test_a_value_comes_from_a_file(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Several lines stay byte for byte."""
    (tmp_path / "key.pem").write_text("first line\nsecond line\n")
    assert run("set", "token", "--file", str(tmp_path / "key.pem")).exit_code == 0
    assert sent(platform) == ["first line\nsecond line\n"]


def test_a_person_is_asked_without_an_echo(platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a terminal."""
    asked = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return VALUE

    monkeypatch.setattr(getpass, "getpass", typed)
    monkeypatch.setattr("pilotlight.cli.commands.secrets.secret.at_terminal", lambda: True)
    assert run("set", "token").exit_code == 0
    assert (asked, sent(platform)) == (["Value of token (not shown): "], [VALUE])


def test_a_value_is_no_argument(platform: ScriptedPlatform) -> None:
    """Others see those."""
    assert run("set", "token", VALUE).exit_code != 0
    assert "--value" not in run("set", "--help").stdout
    assert platform.requests == []


def test_a_value_in_the_name_is_sent_nowhere(platform: ScriptedPlatform) -> None:
    """The audit log would keep it."""
    done = run("set", f"token={VALUE}", given=f"{VALUE}\n")

    assert done.exit_code != 0
    assert "from a terminal, a file or stdin" in str(done.exception) + done.output
    assert VALUE not in str(done.exception) + done.output
    assert platform.requests == []


@pytest.mark.parametrize(
    ("words", "given", "said"),
    [
        (["set", "token"], "tooless\n", "no line of 8 characters"),
        (["set", "token"], "x" * 20_000, "bytes, 16384 are the most"),
        (["set", "token", "--file", "/nowhere/at/all"], None, "No such file"),
    ],
)
def test_what_is_no_value_is_refused_before_it_is_sent(
    platform: ScriptedPlatform, words: list[str], given: str | None, said: str
) -> None:
    """With the reason, and no part of it."""
    done = run(*words, given=given)

    assert done.exit_code != 0
    assert said in str(done.exception) + done.output
    assert "tooless" not in str(done.exception) + done.output
    assert platform.requests == []


def test_bytes_that_are_no_text_are_refused(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """A variable could not hold them."""
    (tmp_path / "key").write_bytes(b"\xff\xfe" * 8)
    done = run("set", "token", "--file", str(tmp_path / "key"))
    assert "encode it, for instance with base64" in str(done.exception) + done.output
    assert platform.requests == []


def test_secrets_are_listed_by_name(platform: ScriptedPlatform) -> None:
    """With who uses them."""
    header, line = run("list").stdout.splitlines()
    assert header.split()[0] == "name"
    assert line.split()[0] == "token"
    assert "shop.hello" in line
    assert msgspec.json.decode(run("list", "--json").stdout)[0]["name"] == "token"
    platform.will("GET", "/v1/secrets", answer({"secrets": []}))
    assert "No secrets." in run("list").output


def test_a_secret_is_removed(platform: ScriptedPlatform) -> None:
    """By its name."""
    assert run("rm", "token").stdout == "Removed token.\n"
    assert msgspec.json.decode(run("rm", "token", "--json").stdout) == {"name": "token", "removed": True}
    assert sys.stdin is not None
