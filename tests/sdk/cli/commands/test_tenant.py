"""Commands about tenants: what they send, and how a tenant is shown."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

ACME = {"name": "acme", "tier": "paid", "weight": 2.0, "created_at": 0.0, "disabled": False}


NO_CHANGE = {"tier": None, "weight": None, "disabled": None, "network": None}


@pytest.mark.parametrize(
    ("words", "method", "sent"),
    [
        (
            ("create", "acme", "--tier", "paid", "--weight", "2"),
            "POST",
            {"name": "acme", "tier": "paid", "weight": 2.0},
        ),
        (("set", "acme", "--tier", "paid"), "PATCH", NO_CHANGE | {"tier": "paid"}),
        (
            ("set", "acme", "--network", "a.example.com:443", "--network", "*.example.org:443"),
            "PATCH",
            NO_CHANGE | {"network": ["a.example.com:443", "*.example.org:443"]},
        ),
        (("set", "acme", "--network", "none"), "PATCH", NO_CHANGE | {"network": []}),
        (("disable", "acme"), "PATCH", NO_CHANGE | {"disabled": True}),
        (("enable", "acme"), "PATCH", NO_CHANGE | {"disabled": False}),
    ],
)
def test_a_tenant_is_made_and_changed(
    platform: ScriptedPlatform, words: tuple[str, ...], method: str, sent: dict[str, Any]
) -> None:
    """The answer is printed as a row of the list, or as JSON."""
    platform.will("POST", "/v1/tenants", answer(ACME, 201))
    platform.will("PATCH", "/v1/tenants/acme", answer(ACME))

    assert cells(run("tenant", *words))[1] == ["acme", "paid", "2", "-", "active", "none"]
    assert msgspec.json.decode(run("tenant", *words, "--json")) == ACME
    assert (platform.requests[0].method, platform.requests[0].json) == (method, sent)


def test_a_tenant_is_shown(platform: ScriptedPlatform) -> None:
    """A tenant is one row."""
    platform.will("GET", "/v1/tenants/acme", answer(ACME))
    assert cells(run("tenant", "show", "acme"))[1][:2] == ["acme", "paid"]


TENANTS = [
    {"name": "acme", "tier": "paid", "weight": 1.5, "created_at": time.time() - 10_800, "disabled": False},
    {
        "name": "zoo",
        "tier": "free",
        "weight": 1.0,
        "created_at": time.time() - 10_800,
        "disabled": True,
        "network": ["a.example.com:443", "b.example.com:443"],
    },
]


def test_tenants_are_listed(platform: ScriptedPlatform) -> None:
    """Each tenant is listed with its tier, weight and state."""
    platform.will("GET", "/v1/tenants", answer({"tenants": TENANTS}))
    assert cells(run("tenant", "list")) == [
        ["tenant", "tier", "weight", "created", "state", "network"],
        ["acme", "paid", "1.5", "3h ago", "active", "none"],
        ["zoo", "free", "1", "3h ago", "disabled", "a.example.com:443, 1 more"],
    ]
    assert msgspec.json.decode(run("tenant", "list", "--json")) == TENANTS


@pytest.mark.parametrize(("is_open", "state"), [(True, "erasing"), (False, "erased"), (None, "erased")])
def test_one_whose_erasure_is_not_over_is_told_from_one_that_is_erased(
    platform: ScriptedPlatform, is_open: bool | None, state: str
) -> None:
    """A gateway of before does not say it."""
    told = {} if is_open is None else {"erasure_open": is_open}
    tenant = TENANTS[1] | {"erased_at": time.time()} | told
    platform.will("GET", "/v1/tenants", answer({"tenants": [tenant]}))
    assert cells(run("tenant", "list"))[1][4] == state


def test_an_unknown_or_existing_tenant_is_an_error(platform: ScriptedPlatform) -> None:
    """The text is the platform's, and the exit code 1."""
    platform.will("GET", "/v1/tenants/nobody", problem("not_found", "There is no tenant nobody."))
    platform.will("POST", "/v1/tenants", problem("conflict", "There is a tenant acme."))
    assert invoke("tenant", "show", "nobody").stderr == "error: There is no tenant nobody.\nCheck the name.\n"
    done = invoke("tenant", "create", "acme")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: There is a tenant acme.\n")


ERASURE = {
    "tenant": "acme", "state": "planned", "found": {"API keys": 3, "blobs": 1041}, "blob_bytes": 4120331002,
    "containers": 2, "confirmation": "6bq0tyh2k1", "why": "", "keeps": ["its lines in the ledger"],
}  # fmt: skip


def test_erasing_takes_two_steps(platform: ScriptedPlatform) -> None:
    """The first says what goes, and both ways from there; the second sends the word."""
    platform.will("POST", "/v1/tenants/acme/erasure", answer(ERASURE))
    platform.will("PUT", "/v1/tenants/acme/erasure", answer(ERASURE | {"state": "erased"}))

    planned = run("tenant", "erase", "acme")
    assert "API keys" in planned
    assert "4,120,331,002" in planned
    assert "stays: its lines in the ledger" in planned
    assert "pilotlight tenant erase acme --confirm 6bq0tyh2k1" in planned
    assert "pilotlight tenant enable acme" in planned
    assert "acme is erased." in run("tenant", "erase", "acme", "--confirm", "6bq0tyh2k1")
    assert [(one.method, one.json) for one in platform.requests[1:]] == [("PUT", {"confirmation": "6bq0tyh2k1"})]
    assert msgspec.json.decode(run("tenant", "erase", "acme", "--json")) == ERASURE


def test_one_that_is_not_whole_yet_is_to_be_asked_for_again(platform: ScriptedPlatform) -> None:
    """With why, and a status for scripts."""
    left = ERASURE | {"state": "erasing", "why": "1 of its containers have not ended"}
    platform.will("PUT", "/v1/tenants/acme/erasure", answer(left))

    done = invoke("tenant", "erase", "acme", "--confirm", "6bq0tyh2k1")
    assert done.exit_code == 1
    assert "acme is not erased whole yet: 1 of its containers have not ended. Run the same again." in done.output
