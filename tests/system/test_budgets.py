"""Budgets through the whole platform: two gateways, one purse, and what the ledger has of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

BUDGETS = "/v1/tenants/default/budgets"
BUDGET = "0.0003"
"""Less than a minute of a slot, for which a call may run, and more than a container's start on a slow machine."""


@pytest.fixture
def platform(pair: Platform) -> Platform:
    """A platform with two gateways."""
    wait_until(lambda: all(pair.http.get(f"{url}/readyz").status_code == 200 for url in pair.urls), "both are ready")
    return pair


def call(platform: Platform, gateway: int, deadline_ms: int | None = None) -> httpx.Response:
    """A call through one of the gateways."""
    url = f"{platform.urls[gateway]}/v1/functions/calls.echo/calls"
    body: dict[str, Any] = {"input": {"value": 1}}
    return platform.http.post(url, json=body if deadline_ms is None else body | {"deadline_ms": deadline_ms})


def listed(platform: Platform) -> dict[str, Any]:
    """The only budget."""
    (found,) = platform.http.get(BUDGETS).json()["budgets"]
    return dict(found)


def test_two_gateways_share_a_purse(platform: Platform) -> None:
    """A call that may cost more than is left is refused by both; one with less time is let in, and its cost shows."""
    platform.cli("billing", "budget", "set", "default", BUDGET, "--period", "lifetime")
    try:
        wait_until(lambda: call(platform, 0).status_code == call(platform, 1).status_code == 402, "both know it")
        refused = call(platform, 1).json()
        assert (refused["code"], refused["budget"]["id"]) == ("budget_exhausted", "lifetime")
        assert refused["budget"]["resets_at"] is None
        wait_until(lambda: call(platform, 0, 2000).status_code == 200, "the ledger was heard")
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: call(platform, number % 2, 2000).status_code, range(40)))
        assert set(answers) <= {200, 402, 408, 503}  # a busy machine has no place in time
        assert answers.count(200) >= 1
        wait_until(lambda: float(listed(platform)["spent_usd"]) > 0, "what is spent is noted")
        assert float(listed(platform)["spent_usd"]) < float(BUDGET)
    finally:
        platform.cli("billing", "budget", "remove", "default", "lifetime")
    wait_until(lambda: call(platform, 0).status_code == call(platform, 1).status_code == 200, "it is gone")


def test_who_pays_ahead_spends_its_credit(platform: Platform) -> None:
    """Nothing runs before the first grant, and it is there at once; usage has a line for what was reached."""
    platform.cli("billing", "budget", "set", "default", "--prepaid", "--thresholds", "100")
    try:
        wait_until(lambda: call(platform, 0).status_code == call(platform, 1).status_code == 402, "both know it")
        refused = call(platform, 1).json()
        assert (refused["code"], refused["budget"]["id"]) == ("budget_exhausted", "prepaid")
        wait_until(lambda: listed(platform)["reached"] == [100], "it is told")
        told = platform.http.get("/v1/usage").json()["thresholds"]
        assert {"prepaid"} <= {one["budget"] for one in told}
        assert "100 % of the budget prepaid of default was reached" in platform.cli("usage").stdout
        platform.cli("billing", "credit", "grant", "default", "100")
        wait_until(lambda: call(platform, 0).status_code == call(platform, 1).status_code == 200, "it is paid")
        assert float(listed(platform)["left_usd"]) > 99
    finally:
        platform.cli("billing", "budget", "remove", "default", "prepaid")


def containers(platform: Platform) -> int:
    """Those that are there, of the functions that are paid here."""
    return sum(one["state"] in ("loading", "ready") for one in platform.containers("calls"))


def test_a_budget_that_is_used_up_keeps_no_container(platform: Platform) -> None:
    """Whatever floor is set; the reason is told, and calls that are let in again start one."""
    wait_until(lambda: call(platform, 0).status_code == 200, "it answers")
    platform.cli("scale", "calls.echo", "--min", "1")
    wait_until(lambda: containers(platform) >= 1, "one is kept")
    platform.cli("billing", "budget", "set", "default", "0.000000001", "--period", "lifetime")
    try:
        wait_until(lambda: listed(platform)["is_exhausted"], "what is idle spends")
        wait_until(lambda: containers(platform) == 0, "none is kept")
        assert "the budget lifetime of default is used up" in platform.cli("explain", "calls.echo").stdout
        platform.deploy(APPS / "calls" / "app.py")  # never blocked
        url, late = f"{platform.urls[0]}/v1/functions/calls.echo/calls", {"Prefer": "respond-async"}
        job = platform.http.post(url, json={"input": {"value": 1}}, headers=late).json()["id"]
        wait_until(lambda: platform.http.get(f"/v1/calls/{job}").json()["waits_for"], "the job waits for money")
        wait_until(lambda: containers(platform) == 0, "none is started for it")
    finally:
        platform.cli("billing", "budget", "remove", "default", "lifetime")
    wait_until(lambda: containers(platform) >= 1, "there is money again")
    wait_until(lambda: platform.http.get(f"/v1/calls/{job}").json()["state"] == "succeeded", "the job runs")
    platform.cli("scale", "calls.echo", "--reset")
