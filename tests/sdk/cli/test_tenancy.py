"""Commands about tenants, keys, limits and shared functions: what they send, and what they say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from pilotlight.cli.main import app
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

ACME = {"name": "acme", "tier": "paid", "weight": 2.0, "created_at": 0.0, "disabled": False}
LIMITS = {
    "tenant": "acme", "tier": "free", "limits": {"concurrency": 3},
    "functions": {"zoo:llm.chat": {"requests_per_s": 2.5}},
    "effective": {"requests_per_s": 10.0, "concurrency": 3},
}  # fmt: skip


def run(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.stderr
    return done.stdout


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in text.splitlines()]


def test_keys_are_made_shown_and_revoked(platform: ScriptedPlatform) -> None:
    """The secret is all of stdout, for `$(…)`; `token` is an older word for `key`."""
    made = {"id": "k9", "key": "pl_live_k9_x", "scopes": ["invoke"], "expires_at": None}
    platform.will("POST", "/v1/keys", answer(made, 201))
    ended = {"id": "k9", "revoked": True, "already": False}
    platform.will("DELETE", "/v1/keys/k9", answer(ended), answer(ended | {"already": True}))
    assert run("key", "create", "--scopes", "invoke, read", "--expires", "30d", "--label", "ci") == "pl_live_k9_x\n"
    assert platform.requests[0].json == {"scopes": ["invoke", "read"], "expires_in_s": 30 * 86_400.0, "label": "ci"}
    assert msgspec.json.decode(run("key", "create", "--json")) == made
    assert run("key", "revoke", "k9") == "Revoked k9.\n"
    assert run("key", "revoke", "k9", "--force") == "k9 was revoked already.\n"
    assert platform.requests[-1].query == "force=true"
    assert msgspec.json.decode(run("key", "revoke", "k9", "--json"))["already"]
    assert run("key", "show") == run("token", "show") == "pl_live_test_secret\n"
    assert CliRunner().invoke(app, ["key", "create", "--expires", "soon"]).exit_code == 2


def test_an_operator_handles_the_keys_of_a_tenant(platform: ScriptedPlatform) -> None:
    """By naming it."""
    made = {"id": "k9", "key": "pl_live_k9_x", "scopes": ["admin"], "expires_at": None}
    platform.will("POST", "/v1/tenants/acme/keys", answer(made, 201))
    platform.will("DELETE", "/v1/tenants/acme/keys/k9", answer({"id": "k9", "revoked": True, "already": False}))

    assert run("key", "create", "--tenant", "acme", "--scopes", "admin") == "pl_live_k9_x\n"
    assert run("key", "revoke", "k9", "--tenant", "acme") == "Revoked k9.\n"


def test_the_last_key_is_kept_with_what_to_do(platform: ScriptedPlatform) -> None:
    """In words of the command line."""
    platform.will("DELETE", "/v1/keys/k9", problem("conflict", "k9 is the last key."))

    done = CliRunner().invoke(app, ["key", "revoke", "k9"])

    assert done.exit_code == 1
    assert done.stderr.endswith("Make another one with 'pilotlight key create --scopes …' first, or add --force.\n")


def test_a_key_is_rotated(platform: ScriptedPlatform) -> None:
    """The new secret is all of stdout; the old one's end is told beside it."""
    made = {"id": "k2", "key": "pl_live_k2_x", "scopes": [], "replaces": "k1", "replaced_until": 0.0}
    platform.will("POST", "/v1/keys/k1/rotate", answer(made, 201))

    done = CliRunner().invoke(app, ["key", "rotate", "k1", "--overlap", "12h", "--expires", "30d"])

    assert done.stdout == "pl_live_k2_x\n"
    assert "k2 follows k1, which is not valid any more; it is not shown again." in done.stderr
    assert platform.requests[0].json == {"overlap_s": 43_200.0, "expires_in_s": 2_592_000.0}
    assert msgspec.json.decode(run("key", "rotate", "k1", "--json")) == made


@pytest.mark.parametrize(
    ("words", "method", "sent"),
    [
        (
            ("create", "acme", "--tier", "paid", "--weight", "2"),
            "POST",
            {"name": "acme", "tier": "paid", "weight": 2.0},
        ),
        (("set", "acme", "--tier", "paid"), "PATCH", {"tier": "paid", "weight": None, "disabled": None}),
        (("disable", "acme"), "PATCH", {"tier": None, "weight": None, "disabled": True}),
        (("enable", "acme"), "PATCH", {"tier": None, "weight": None, "disabled": False}),
    ],
)
def test_a_tenant_is_made_and_changed(
    platform: ScriptedPlatform, words: tuple[str, ...], method: str, sent: dict[str, Any]
) -> None:
    """The answer is shown as the list shows it, or as JSON."""
    platform.will("POST", "/v1/tenants", answer(ACME, 201))
    platform.will("PATCH", "/v1/tenants/acme", answer(ACME))

    assert cells(run("tenant", *words))[1] == ["acme", "paid", "2", "-", "active"]
    assert msgspec.json.decode(run("tenant", *words, "--json")) == ACME
    assert (platform.requests[0].method, platform.requests[0].json) == (method, sent)


def test_a_tenant_is_shown(platform: ScriptedPlatform) -> None:
    """One line."""
    platform.will("GET", "/v1/tenants/acme", answer(ACME))
    assert cells(run("tenant", "show", "acme"))[1][:2] == ["acme", "paid"]


def test_a_quota_is_shown_with_where_it_comes_from(platform: ScriptedPlatform) -> None:
    """The tier's, the tenant's own, and those for single functions."""
    platform.will("GET", "/v1/tenants/acme/limits", answer(LIMITS))

    assert cells(run("quota", "show", "acme")) == [
        ["calls", "limit", "value", "from"],
        ["all calls", "requests_per_s", "10", "tier free"],
        ["all calls", "concurrency", "3", "set for it"],
        ["zoo:llm.chat", "requests_per_s", "2.5", "set for it"],
    ]
    assert msgspec.json.decode(run("quota", "show", "acme", "--json")) == LIMITS


def test_a_quota_is_set_and_cleared(platform: ScriptedPlatform) -> None:
    """For all calls, or for those to one function."""
    one = {"tenant": "acme", "function": "zoo:llm.chat", "limits": {"requests_per_s": 2.5}, "effective": {}}
    platform.will("PUT", "/v1/tenants/acme/limits", answer(LIMITS))
    platform.will("PUT", "/v1/tenants/acme/limits/zoo:llm.chat", answer(one))
    platform.will("DELETE", "/v1/tenants/acme/limits", Answer(status=204))
    platform.will("DELETE", "/v1/tenants/acme/limits/zoo:llm.chat", Answer(status=204))
    function = ("--function", "zoo:llm.chat")

    assert run("quota", "set", "acme", "concurrency=3") == "all calls of acme: concurrency=3\n"
    assert run("quota", "set", "acme", "requests_per_s=2.5", *function).endswith("zoo:llm.chat: requests_per_s=2.5\n")
    assert [request.json for request in platform.requests] == [{"concurrency": 3}, {"requests_per_s": 2.5}]
    assert run("quota", "clear", "acme").endswith("for acme.\n")
    assert run("quota", "clear", "acme", *function).endswith("to zoo:llm.chat.\n")
    assert msgspec.json.decode(run("quota", "set", "acme", "concurrency=3", "--json")) == LIMITS


def test_a_quota_of_a_function_that_is_not_there_is_refused_with_what_to_do(platform: ScriptedPlatform) -> None:
    """Unless it is said that the function comes later."""
    path = "/v1/tenants/acme/limits/zoo:llm.chat"
    platform.will(
        "PUT", path, problem("unknown_function", "There is no function zoo:llm.chat."), answer({"function": "f"})
    )
    words = ["quota", "set", "acme", "burst=3", "--function", "zoo:llm.chat"]

    assert "If it is deployed later, add --ahead." in CliRunner().invoke(app, words).stderr
    assert CliRunner().invoke(app, [*words, "--ahead"]).exit_code == 0
    assert [request.query for request in platform.requests] == ["", "ahead=true"]


def test_a_quota_of_nothing_is_refused() -> None:
    """It would remove what is set: `clear` is for that."""
    done = CliRunner().invoke(app, ["quota", "set", "acme"])

    assert done.exit_code == 2
    assert "quota clear" in done.stderr


def test_a_tier_is_set_and_dropped(platform: ScriptedPlatform) -> None:
    """Its fields and, with a prefix, its limits."""
    tier = {"name": "gold", "rank": 5, "weight": 2.0, "priority_ceiling": "batch", "reserved_share": 0.1,
            "limits": {"concurrency": 4}, "source": "registry"}  # fmt: skip
    platform.will("PUT", "/v1/tiers/gold", answer(tier))
    platform.will("DELETE", "/v1/tiers/gold", Answer(status=204))

    shown = run("quota", "set-tier", "gold", "rank=5", "priority_ceiling=batch", "limits.concurrency=4")

    assert cells(shown)[1] == ["gold", "5", "2", "batch", "10%", "concurrency=4", "registry"]
    assert platform.requests[0].json == {"rank": 5, "priority_ceiling": "batch", "limits": {"concurrency": 4}}
    assert msgspec.json.decode(run("quota", "set-tier", "gold", "--json")) == tier
    assert run("quota", "drop-tier", "gold") == "Dropped gold.\n"


def test_an_app_is_shared_and_that_is_ended(platform: ScriptedPlatform) -> None:
    """With one tenant or with everybody."""
    platform.will("PUT", "/v1/apps/llm/shares/acme", answer({"tenant": "acme", "functions": []}))
    platform.will("PUT", "/v1/apps/llm/shares/*", answer({"tenant": "*", "functions": ["chat"]}))
    platform.will("DELETE", "/v1/apps/llm/shares/acme", Answer(status=204))

    assert run("app", "share", "llm", "acme") == "acme may call all functions of llm.\n"
    assert run("app", "share", "llm", "*", "chat") == "Everybody may call chat of llm.\n"
    assert [request.json for request in platform.requests] == [{"functions": []}, {"functions": ["chat"]}]
    assert msgspec.json.decode(run("app", "share", "llm", "acme", "--json"))["tenant"] == "acme"
    assert run("app", "unshare", "llm", "acme") == "llm is not shared with acme any more.\n"


@pytest.mark.parametrize("noun", ["tenant", "key", "quota", "app"])
def test_every_command_has_an_example_in_its_help(noun: str) -> None:
    """Which names the command as it is typed."""
    group = typer.main.get_command(import_module(f"pilotlight.cli.commands.{noun}").app)
    for name in group.commands:  # type: ignore[attr-defined]
        shown = run(noun, name, "--help")
        assert f"pilotlight {noun} {name}" in shown
