"""Commands about keys: what they send, what they print, and where a secret goes."""

from __future__ import annotations

import time

import msgspec
import pytest

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem


def test_the_last_key_is_kept_with_advice(platform: ScriptedPlatform) -> None:
    """The advice names commands and options."""
    platform.will("DELETE", "/v1/keys/k9", problem("conflict", "k9 is the last key."))

    done = invoke("key", "revoke", "k9")

    assert done.exit_code == 1
    assert done.stderr.endswith("Make another one with 'pilotlight key create --scopes …' first, or add --force.\n")


def test_keys_are_made_shown_and_revoked(platform: ScriptedPlatform) -> None:
    """The secret is all of stdout, for `$(…)`; `token` is an alias of `key`."""
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


def test_an_operator_handles_the_keys_of_a_tenant(platform: ScriptedPlatform) -> None:
    """The option --tenant names the tenant."""
    made = {"id": "k9", "key": "pl_live_k9_x", "scopes": ["admin"], "expires_at": None}
    platform.will("POST", "/v1/tenants/acme/keys", answer(made, 201))
    platform.will("DELETE", "/v1/tenants/acme/keys/k9", answer({"id": "k9", "revoked": True, "already": False}))

    assert run("key", "create", "--tenant", "acme", "--scopes", "admin") == "pl_live_k9_x\n"
    assert run("key", "revoke", "k9", "--tenant", "acme") == "Revoked k9.\n"


def test_a_key_is_rotated(platform: ScriptedPlatform) -> None:
    """The new secret is all of stdout, and stderr has the end of the old key."""
    made = {"id": "k2", "key": "pl_live_k2_x", "scopes": [], "replaces": "k1", "replaced_until": 0.0}
    platform.will("POST", "/v1/keys/k1/rotate", answer(made, 201))

    done = invoke("key", "rotate", "k1", "--overlap", "12h", "--expires", "30d")

    assert done.stdout == "pl_live_k2_x\n"
    assert "k2 follows k1, which is not valid any more; it is not shown again." in done.stderr
    assert platform.requests[0].json == {"overlap_s": 43_200.0, "expires_in_s": 2_592_000.0}
    assert msgspec.json.decode(run("key", "rotate", "k1", "--json")) == made


KEYS = [
    {"id": "k1", "label": "ci", "scopes": ["invoke", "deploy"], "created_at": time.time() - 10_800,
     "expires_at": time.time() + 100_000, "revoked": False},
    {"id": "k2", "label": "", "scopes": ["invoke"], "created_at": time.time() - 10_800, "expires_at": None,
     "revoked": True},
    {"id": "k3", "label": "", "scopes": ["read"], "created_at": 0.0, "expires_at": 1.0, "revoked": False},
]  # fmt: skip


def test_keys_are_listed(platform: ScriptedPlatform) -> None:
    """The keys of the caller or of a tenant are listed with their ends and without secrets."""
    platform.will("GET", "/v1/keys", answer({"keys": KEYS}))
    platform.will("GET", "/v1/tenants/acme/keys", answer({"keys": []}))
    assert cells(run("key", "list")) == [
        ["id", "label", "scopes", "created", "expires"],
        ["k1", "ci", "invoke, deploy", "3h ago", "in 1d"],
        ["k2", "invoke", "3h ago", "revoked"],
        ["k3", "read", "-", "expired"],
    ]
    assert msgspec.json.decode(run("key", "list", "--json")) == KEYS
    assert msgspec.json.decode(run("key", "list", "--tenant", "acme", "--json")) == []
    assert invoke("key", "list", "--tenant", "acme").stderr == "No keys.\n"


@pytest.mark.parametrize(
    "words", [("create", "--expires", "soon"), ("rotate", "k1", "--overlap", "-1h"), ("rotate", "k1", "--expires", "1")]
)
def test_a_malformed_time_is_refused(platform: ScriptedPlatform, words: tuple[str, ...]) -> None:
    """The error names the option, and nothing is sent."""
    done = invoke("key", *words)
    assert done.exit_code == 2
    assert "expected a time such as 12h or 30d." in done.stderr
    assert platform.requests == []


def test_a_certificate_stands_for_a_key_without_a_secret(platform: ScriptedPlatform) -> None:
    """It is said which; the list has its holder where it has no label."""
    made = {"id": "k7", "key": "", "scopes": ["read"], "expires_at": None, "certificate": "reports"}
    platform.will("POST", "/v1/tenants/acme/keys", answer(made, 201))
    listed = made | {"created_at": time.time(), "revoked": False, "label": ""}
    platform.will("GET", "/v1/tenants/acme/keys", answer({"keys": [listed]}))

    told = run("key", "create", "--tenant", "acme", "--certificate", "reports", "--scopes", "read")

    assert told == "Certificates of reports stand for the key k7, which may read.\n"
    assert platform.requests[0].json["certificate"] == "reports"
    assert cells(run("key", "list", "--tenant", "acme"))[1][:2] == ["k7", "certificate reports"]
