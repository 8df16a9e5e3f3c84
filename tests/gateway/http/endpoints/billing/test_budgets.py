"""Budgets over HTTP: who sets them, what is wrong with them, and what callers hear when one is used up."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from pilotlight_core.model.money.budgets import BudgetPeriod, HomeTranches, Tranche, span_of
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from pilotlight_gateway.oidc.token_authenticator import principal_of_token
from pilotlight_gateway.oidc.token_claims import TokenSubject
from tests.gateway.budgets.stored_tranches import StoredTranches
from tests.gateway.oidc.token_maker import RECORD
from tests.gateway.world import World, function

PATH = "/v1/tenants/acme/budgets"


async def test_a_budget_is_set_listed_and_removed(world: World) -> None:
    """There is one of each scope and period."""
    async with world.client() as client:
        first = (await client.put(PATH, json={"usd": "250"})).json()
        again = (await client.put(PATH, json={"usd": "12.5", "mode": "soft", "thresholds": [80]})).json()
        daily = (await client.put(PATH, json={"usd": "1", "period": "day", "key": world.key.id})).json()
        listed = (await client.get(PATH)).json()
        gone = await client.delete(f"{PATH}/day:key:{world.key.id}")
        rest = (await client.get(PATH)).json()
        unknown = await client.delete(f"{PATH}/year")

    assert (first["id"], first["usd"], first["left_usd"], first["is_exhausted"]) == ("month", "250", "250", False)
    assert (again["id"], again["usd"], again["mode"], again["thresholds"]) == ("month", "12.5", "soft", [80])
    assert daily["id"] == f"day:key:{world.key.id}"
    assert [one["id"] for one in listed["budgets"]] == ["month", daily["id"]]
    assert (gone.status_code, [one["id"] for one in rest["budgets"]]) == (204, ["month"])
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "acme has no budget 'year'.")


async def test_a_budget_may_be_of_who_has_logged_in(world: World) -> None:
    """By the name that stands for them in the place of a key's id; one that no issuer on record gives is none."""
    world.registry.issuer_records["corp"] = RECORD
    holder = principal_of_token(RECORD, TokenSubject(subject="ada", tenant="acme", scopes=frozenset(), ends_at=0.0))
    async with world.client() as client:
        made = await client.put(PATH, json={"usd": "1", "key": holder.key_id})
        strange = [
            (await client.put(PATH, json={"usd": "1", "key": key})).status_code
            for key in ("oidc-corp-ada", "oidc-lab-0123456789abcdef", "oidc-corp-0123456789abcdeg", "oidc-corp-")
        ]

    assert (made.status_code, made.json()["id"]) == (200, f"month:key:{holder.key_id}")
    assert strange == [422] * 4


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"usd": "-1"}, "usd"),
        ({"usd": "1", "period": "week"}, "period"),
        ({"usd": "1", "tz": "Mars"}, "tz"),
        ({"usd": "1", "tz": "localtime"}, "tz"),
        ({"usd": "1", "tz": "posix/Europe/Berlin"}, "tz"),
        ({"usd": "1", "function": "no such"}, "function"),
        ({"usd": "1", "key": "nokey"}, "key"),
        ({"usd": "1", "thresholds": [9, 3]}, "thresholds"),
        ({"usd": "1", "limit": 3}, "limit"),
    ],
)
async def test_what_is_wrong_names_the_field(world: World, wrong: dict[str, Any], field: str) -> None:
    """In one sentence."""
    async with world.client() as client:
        refused = await client.put(PATH, json=wrong)
    assert (refused.status_code, refused.json()["field"]) == (422, field)


async def test_what_an_operator_has_set_a_tenant_does_not_change(world: World) -> None:
    """But it sees it; others see nothing."""
    async with world.client(world.operator) as operator:
        assert (await operator.put(PATH, json={"usd": "5"})).json()["by_operator"] is True
    async with world.client() as client:
        answers = [await client.put(PATH, json={"usd": "500"}), await client.delete(f"{PATH}/month")]
        seen = (await client.get(PATH)).json()
        other = await client.get("/v1/tenants/platform/budgets")
    assert [answer.status_code for answer in answers] == [403, 403]
    assert [one["usd"] for one in seen["budgets"]] == ["5"]
    assert other.status_code == 404


async def test_what_the_home_has_noted_is_shown(world: World) -> None:
    """Of the present period."""
    begins = span_of(BudgetPeriod.MONTH, "UTC", int(time.time())).begins

    async def noted(_tenant: str) -> HomeTranches:
        tranche = Tranche(begins=begins, spent=4 * 10**9, told=(50, 80))
        return HomeTranches(tenant="acme", tranches={"month": tranche})

    world.services.tranches = noted
    async with world.client() as client:
        told = (await client.put(PATH, json={"usd": "5"})).json()
    assert (told["spent_usd"], told["left_usd"], told["reached"]) == ("4", "1", [50, 80])


def budgets_of(world: World) -> BudgetHome:
    """Let the world's calls be paid from budgets."""
    budgets = BudgetHome(world.registry.budgets, world.wall)
    StoredTranches().serve(budgets)
    policies = LimitPolicies(world.registry.limits, world.registry.budgets)
    world.services.limits = MemoryLimiter(policies, world.clock, budgets)
    return budgets


async def test_only_the_first_call_of_a_key_is_paid(world: World) -> None:
    """A repeated answer costs nothing, though no money is left; who was refused for money may try again."""
    world.deploy(function())
    budgets = budgets_of(world)

    async def call(key: str) -> httpx.Response:
        return await client.post(
            "/v1/functions/shop.hello/calls", json={"input": {"name": "Ada"}}, headers={"idempotency-key": key}
        )

    async with world.client() as client:
        await client.put(PATH, json={"usd": "100"})
        first = await call("k-1")
        await client.put(PATH, json={"usd": "0"})
        replayed, refused = await call("k-1"), await call("k-2")
        await client.put(PATH, json={"usd": "100"})
        again = await call("k-2")
    assert [one.status_code for one in (first, replayed, refused, again)] == [200, 200, 402, 200]
    assert replayed.headers["idempotent-replayed"] == "true"
    assert len(world.calls.seen) == 2
    assert budgets.purses("acme")["month"].reserved == 0


async def test_a_call_that_may_cost_more_than_is_left_is_refused(world: World) -> None:
    """With the budget, what is left, and when it begins anew; less time costs less."""
    world.deploy(function())
    budgets = budgets_of(world)
    async with world.client() as client:
        await client.put(PATH, json={"usd": "0.001"})
        refused = await client.post("/v1/functions/shop.hello/calls", json={"input": {"name": "Ada"}})
        short = await client.post(
            "/v1/functions/shop.hello/calls", json={"input": {"name": "Ada"}, "deadline_ms": 1000}
        )
    assert (refused.status_code, refused.json()["code"]) == (402, "budget_exhausted")
    told = refused.json()["budget"]
    assert (told["id"], told["tenant"], told["usd"], told["left_usd"]) == ("month", "acme", "0.001", "0.001")
    assert told["resets_at"].endswith("01T00:00:00Z")
    assert int(refused.headers["retry-after"]) > 0
    assert short.status_code == 200
    assert budgets.purses("acme")["month"].reserved == 0
