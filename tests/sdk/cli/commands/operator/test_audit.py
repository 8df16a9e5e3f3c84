"""`pilotlight audit`: what it asks for, and what it shows."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem


def entry(operation: str, **more: Any) -> dict[str, Any]:
    """A change that the key k1 of acme asked for."""
    fields = {
        "id": "req_1", "at": 1_800_000_000.0, "tenant": "acme", "by": "acme", "key": "k1", "address": "10.0.0.7",
        "target": {}, "told": {}, "status": 200, "code": "",
    }  # fmt: skip
    return {"operation": operation, **fields, **more}


def test_changes_are_a_table(platform: ScriptedPlatform) -> None:
    """Who asked for what, of what, and what came of it."""
    told = {
        "entries": [
            entry("setLimits", target={"tenant": "acme"}, told={"concurrency": 3}, by="platform"),
            entry("revokeKey", target={"id": "8c1f0eXY"}, status=409, code="conflict"),
            entry("deployApp", target={"app": "shop"}, told={"message": "v2"}, status=0),
        ],
        "more": False,
    }  # fmt: skip
    platform.will("GET", "/v1/audit", answer(told))

    rows = cells(run("audit"))

    assert rows[0] == ["when", "by", "change", "of", "told", "result"]
    assert [row[1:] for row in rows[1:]] == [
        ["platform k1", "setLimits", "acme", "concurrency=3", "done"],
        ["acme k1", "revokeKey", "acme 8c1f0eXY", "conflict"],
        ["acme k1", "deployApp", "acme shop", "message=v2", "unknown"],
    ]
    assert msgspec.json.decode(run("audit", "--json")) == told


def test_what_is_asked_for_is_sent(platform: ScriptedPlatform) -> None:
    """And nothing that was not named."""
    platform.will("GET", "/v1/audit", answer({"entries": [entry("stopApp")], "more": True}))

    done = invoke("audit", "--since", "7d", "--operation", "stopApp", "--key", "k1", "--tenant", "acme", "--limit", "1")
    run("audit", "--all")

    first, second = (request.query for request in platform.asked("/v1/audit"))
    assert sorted(first.split("&")) == ["key=k1", "limit=1", "operation=stopApp", "since=7d", "tenant=acme"]
    assert sorted(second.split("&")) == ["all=true", "limit=100", "since=1d"]
    assert "These are the last 1" in done.stderr


def test_nothing_to_show_is_said(platform: ScriptedPlatform) -> None:
    """And what is refused, in a sentence."""
    platform.will("GET", "/v1/audit", answer({"entries": [], "more": False}))
    assert "Nothing was changed in the last 2h." in invoke("audit", "--since", "2h").stderr

    platform.will("GET", "/v1/audit", problem("forbidden", "The changes of other tenants are shown to operators."))
    done = invoke("audit", "--all")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "shown to operators" in done.stderr
