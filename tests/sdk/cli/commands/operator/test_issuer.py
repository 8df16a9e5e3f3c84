"""`pilotlight issuer`: what its words become, and what is listed."""

from __future__ import annotations

import pytest

from tests.sdk.cli.identity_answers import ISSUER
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import Answer, ScriptedPlatform, answer

URL = "https://login.example.com"


def test_an_issuer_of_one_tenant(platform: ScriptedPlatform) -> None:
    """By default its tokens are for the client, and so id tokens."""
    platform.will("PUT", "/v1/issuers/corp", answer(ISSUER))
    words = ("--client-id", "cli", "--tenant", "acme", "--group", "eng=invoke, deploy", "--group", "*=read")
    said = run("issuer", "set", "corp", URL, *words)
    assert said.endswith("its keys are at https://login.example.com/keys.\n")
    asked = platform.requests[0].json
    assert (asked["url"], asked["audience"], asked["tenant"], asked["tenants"]) == (URL, "cli", "acme", {})
    assert asked["groups"] == {"eng": ["invoke", "deploy"], "*": ["read"]}


def test_an_issuer_of_several_tenants(platform: ScriptedPlatform) -> None:
    """A value may have an equals sign in it, as names of directories have."""
    platform.will("PUT", "/v1/issuers/corp", answer(ISSUER))
    words = ("--audience", "api", "--tenant-claim", "org", "--tenant", "o=acme,c=de=acme", "--tenant", "*")
    done = invoke("issuer", "set", "corp", URL, *words, "--parameter", "resource=a=b", "--algorithm", "ES256")
    assert "No group has any scope" in done.stderr
    asked = platform.requests[0].json
    assert (asked["tenant"], asked["tenants"]) == ("", {"o=acme,c=de": "acme", "*": "*"})
    assert (asked["login_parameters"], asked["algorithms"]) == ({"resource": "a=b"}, ["ES256"])


@pytest.mark.parametrize(
    "words", [(), ("--tenant", "a", "--tenant", "b"), ("--tenant", "a", "--group", "eng"),
              ("--tenant-claim", "org", "--tenant", "acme")],
)  # fmt: skip
def test_words_that_are_wrong(platform: ScriptedPlatform, words: tuple[str, ...]) -> None:
    assert invoke("issuer", "set", "corp", URL, "--client-id", "cli", *words).exit_code == 1
    assert platform.requests == []


def test_issuers_are_listed_and_removed(platform: ScriptedPlatform) -> None:
    """With what is wrong with them."""
    platform.will("GET", "/v1/issuers", answer({"issuers": [ISSUER]}), answer({"issuers": []}))
    platform.will("DELETE", "/v1/issuers/corp", Answer(status=204))
    row = cells(run("issuer", "list"))[-1]
    assert row[3:] == [
        "acme-corp=acme", "engineers=invoke+deploy, *=read",
        "2, 1m old; https://login.example.com/keys has answered 502",
    ]  # fmt: skip
    assert run("issuer", "remove", "corp") == "Tokens of corp are not taken any more.\n"
    assert "No issuers" in invoke("issuer", "list").stderr
