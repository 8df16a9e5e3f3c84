"""From a model's name to a call: limits, deadlines, schemas."""

from __future__ import annotations

from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_core.model.limits import Limits
from pilotlight_core.model.money.budgets import BudgetsRecord
from pilotlight_core.model.tenancy import FunctionShareRecord, LimitsRecord
from pilotlight_gateway.budgets.budget_home import BudgetHome
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.gateway.budgets.stored_tranches import StoredTranches, budget
from tests.gateway.http.openai.models import NAME, chunks, generate, served
from tests.gateway.world import World

HI: Any = [{"role": "user", "content": "hi"}]

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def ask(client: httpx.AsyncClient, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    """A chat."""
    body = {"model": NAME, "messages": HI, **more}
    return await client.post("/v1/chat/completions", json=body, headers=headers or {})


async def test_how_long_a_client_waits_bounds_its_call(world: World) -> None:
    """Unless it is a stream, which is kept alive; a wrong or longer time bounds nothing."""
    served(world, timeout=100.0, startup_timeout=20.0)
    waits = ["5", "5", "nan", "-1", "", "0", "1e3", "900"]
    async with world.client() as client:
        for number, text in enumerate(waits):
            await ask(client, {"x-stainless-read-timeout": text}, stream=number == 1)
    times = [round(call.deadline_at - call.arrived_at) for call in world.calls.seen]
    assert times == [5, 120, 120, 120, 120, 120, 120, 120]


async def test_a_functions_own_schema_refuses(world: World) -> None:
    """In the words of the request."""
    served(world)
    async with world.client() as client:
        answer = await ask(client, messages=[7])
        deep = await ask(client, messages=[eval("[" * 70 + "]" * 70)])  # noqa: S307
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, "messages.0", "bad_request")
    assert error["message"].startswith("messages.0: ")
    assert deep.status_code == 400


async def test_limits_hold_and_are_told_in_openais_words(world: World) -> None:
    """A refusal says when to come again, and so does an answer."""
    served(world)
    world.calls.events = chunks("hi")
    limits = Limits(requests_per_s=1, burst=1)
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=limits)
    world.services.limits = MemoryLimiter(LimitPolicies(world.registry.limits))
    async with world.client() as client:
        first, second = await ask(client), await ask(client)
    assert (first.status_code, second.status_code) == (200, 429)
    assert first.headers["x-ratelimit-limit-requests"] == "1"
    assert first.headers["x-ratelimit-remaining-requests"] == "0"
    assert second.json()["error"]["type"] == "rate_limit_error"
    assert second.headers["x-should-retry"] == "true"


async def test_a_body_is_within_the_tenants_limit(world: World) -> None:
    """Though its model is known only once it has come."""
    served(world)
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(payload_bytes=200))
    world.services.limits = MemoryLimiter(LimitPolicies(world.registry.limits))
    async with world.client() as client:
        answer = await ask(client, user="x" * 300)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    assert not world.calls.seen


async def test_a_shared_function_is_a_model_by_its_ref(world: World) -> None:
    """And what it says when it fails stays with its owner."""
    served(world, tenant="zoo")
    world.add_key("zoo")
    world.registry.share_records["zoo", "shop"] = FunctionShareRecord(tenant="zoo", app="shop", grants={"acme": ()})
    world.calls.events = chunks("hi")
    async with world.client() as client:
        found = await ask(client, model="zoo:shop.tells")
        by_name = await ask(client)
    assert found.json()["choices"][0]["message"]["content"] == "hi"
    assert by_name.status_code == 404


@pytest.mark.parametrize(
    "headers", [{"prefer": "respond-async"}, {"accept": "text/event-stream"}, {"openai-project": "x"}]
)
async def test_other_headers_change_nothing(world: World, headers: dict[str, str]) -> None:
    """An answer is never put off."""
    served(world)
    world.calls.events = chunks("hi")
    async with world.client() as client:
        answer = await ask(client, headers)
    assert (answer.status_code, answer.json()["object"]) == (200, "chat.completion")


async def test_priority_and_trace_are_those_of_the_request(world: World) -> None:
    """As of a native call."""
    served(world)
    async with world.client() as client:
        await ask(client, {"pilotlight-priority": "batch", "traceparent": TRACE})
    assert (world.calls.seen[0].priority, world.calls.seen[0].traceparent) == ("batch", TRACE)


async def test_a_stream_has_no_key(world: World) -> None:
    """It would run again, and nobody would have kept money for it."""
    served(world)
    async with world.client() as client:
        answer = await ask(client, {"idempotency-key": "k"}, stream=True)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "Idempotency-Key")
    assert not world.calls.seen


async def test_money_is_kept_for_a_call_before_it_runs(world: World) -> None:
    """Whole, streamed, and with a key; without money none runs, and nothing stays kept."""
    served(world)
    world.calls.events = chunks("hi")
    home = BudgetHome(world.registry.budgets, world.wall)
    StoredTranches().serve(home)
    policies = LimitPolicies(world.registry.limits, world.registry.budgets)
    world.services.limits = MemoryLimiter(policies, budgets=home)
    status = []
    async with world.client() as client:
        for amount in (0, 10**15):
            world.registry.budget_records["acme"] = BudgetsRecord(tenant="acme", budgets=(budget(amount),))
            status += [(await ask(client)).status_code, (await ask(client, stream=True)).status_code]
            status.append((await ask(client, {"idempotency-key": "k"})).status_code)
    assert status == [402, 402, 402, 200, 200, 200]
    assert len(world.calls.seen) == 3
    assert home.purses("acme")["month"].reserved == 0


async def test_a_large_body_is_read_in_a_worker(world: World) -> None:
    """With the same words for what is wrong, and nothing stays counted."""
    served(world)
    world.calls.events = chunks("hi")
    long: Any = [{"role": "user", "content": "x" * 300_000}]
    async with world.client() as client:
        good = await ask(client, messages=long, temperature=0.5, brand_new=1)
        bad = await ask(client, messages=long, n=2)
        deep = await client.post(
            "/v1/chat/completions", content=b'{"x":' + b"[" * 200_000, headers={"content-type": "application/json"}
        )
        vectors = await client.post("/v1/embeddings", json={"model": NAME, "input": [1] * 200_000})
    assert good.json()["choices"][0]["message"]["content"] == "hi"
    assert good.headers["pilotlight-ignored"] == "brand_new"
    assert msgspec.msgpack.decode(world.calls.seen[0].input) == {"messages": long, "temperature": 0.5}
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "n")
    assert (deep.status_code, vectors.status_code) == (400, 400)
    assert world.services.budget.used == 0


async def test_a_body_of_another_type_is_refused(world: World) -> None:
    """In OpenAI's form."""
    served(world, generate())
    async with world.client() as client:
        answer = await client.post("/v1/chat/completions", content=b"x", headers={"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")
