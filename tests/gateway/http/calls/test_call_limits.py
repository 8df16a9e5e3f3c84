"""Calls under limits, through the whole application: what is refused, what headers say, and that the wait is true."""

from __future__ import annotations

import asyncio
import statistics

import httpx
import pytest
from anyio import wait_all_tasks_blocked

from pilotlight_core.model.errors import DeadlineExceeded, FunctionRaised, Unavailable
from pilotlight_core.model.limits import NO_LIMITS, EffectiveLimits, Limits
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.limits.limit_admission import Admission, unreachable
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.builders.specs import method
from tests.gateway.world import World, function
from tests.variants import with_variants

PATH = "/v1/functions/shop.hello/calls"
BODY = {"input": {"name": "x"}}


class Limited:
    """A world whose tenant has limits, and a clock that a test moves."""

    def __init__(
        self, world: World, tenant: Limits, function_limits: Limits = NO_LIMITS, *, deployed: MethodSpec | None = None
    ) -> None:
        self.at = 0.0
        self.policy = policy_of(EffectiveLimits(tenant=tenant, function=function_limits), "acme:shop.hello")
        self.limiter = MemoryLimiter(lambda *_: self.policy, lambda: self.at)
        world.services.limits = self.limiter
        world.deploy(function() if deployed is None else function("hello", deployed))
        self.client = world.client()

    async def call(self) -> httpx.Response:
        return await self.client.post(PATH, json=BODY)


async def test_without_limits_there_are_no_headers(world: World) -> None:
    """Nothing was counted, nobody was asked."""
    limited = Limited(world, NO_LIMITS)

    answer = await limited.call()

    assert answer.status_code == 200
    assert not {"ratelimit", "ratelimit-policy"} & answer.headers.keys()


async def test_answers_and_refusals_tell_policy_and_rest(world: World) -> None:
    """Two go, the third is 429 with what is violated and when to come again: at that time it is let in."""
    limited = Limited(world, Limits(requests_per_s=0.5, burst=2.0))

    first, second, third = [await limited.call() for _ in range(3)]

    assert (first.status_code, first.headers["ratelimit"]) == (200, '"requests";r=1;t=2')
    assert (second.status_code, second.headers["ratelimit"]) == (200, '"requests";r=0;t=2')
    assert (third.status_code, third.headers["ratelimit"]) == (429, '"requests";r=0;t=2')
    assert {answer.headers["ratelimit-policy"] for answer in (first, second, third)} == {'"requests";q=2;w=4'}
    document = third.json()
    assert (document["code"], document["violated-policies"]) == ("rate_limited", ["requests"])
    assert document["limits"] == [
        {"limit": "requests_per_s", "tenant": "acme", "allowed": 0.5, "burst": 2.0, "left": 0.0}
    ]
    assert document["detail"] == "acme may make 0.5 calls a second, 2 at once: none is left now."
    assert third.headers["retry-after"] == "2"
    assert int(third.headers["retry-after"]) >= int(third.headers["ratelimit"].partition("t=")[2])
    assert 2000 <= int(third.headers["retry-after-ms"]) <= 2200

    limited.at += int(third.headers["retry-after-ms"]) / 1000
    assert (await limited.call()).status_code == 200


@pytest.mark.parametrize("rate", with_variants([0.5, 0.001, 0.9, 0.03], 2))
async def test_the_time_to_wait_is_the_truth(world: World, rate: float) -> None:
    """A twentieth before what is told it is still too early; when it is told, the call is let in."""
    limited = Limited(world, Limits(requests_per_s=rate, burst=1.0))
    await limited.call()
    errors = []
    for _ in range(9):
        told = int((await limited.call()).headers["retry-after-ms"]) / 1000
        refused_at, true = limited.at, 0.0
        for step in range(1, 101):
            limited.at = refused_at + told * step / 100
            if (await limited.call()).status_code == 200:
                true = limited.at - refused_at
                break
        assert true
        errors.append((told - true) / true)

    assert min(errors) > -1e-9
    assert statistics.median(errors) <= 0.11


async def test_a_running_call_holds_its_permit_until_its_answer_is_out(world: World) -> None:
    """One at a time: the second is refused while the first runs, and let in after it."""
    limited = Limited(world, Limits(concurrency=1))
    world.calls.hold = asyncio.Event()
    first = asyncio.create_task(limited.call())
    await wait_all_tasks_blocked()
    assert limited.limiter.home.statistics().permits == 1

    refused = await limited.call()
    assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["concurrency"])
    assert refused.headers["ratelimit"] == '"concurrency";r=0'

    world.calls.hold.set()
    assert (await first).status_code == 200
    assert limited.limiter.home.statistics().permits == 0
    assert (await limited.call()).status_code == 200


@pytest.mark.parametrize(
    ("body", "fails_after_ms", "left"),
    [
        (BODY, 1.0, 1000 - 1 - 1),  # it took 1, and so the next is taken to
        (BODY, 500.0, 1000 - 500 - 500),
        ({"input": {"no": 1}}, None, 1000 - 100),  # it never ran
        (BODY, 0.0, 1000 - 100),  # nor did this one
        (BODY, None, 1000 - 100 - 100),  # nobody knows: the estimate stands
    ],
)
@pytest.mark.parametrize("status", [500, 503, 408])
async def test_cost_is_corrected_when_the_call_has_failed(
    world: World, body: dict[str, object], fails_after_ms: float | None, left: int, status: int
) -> None:
    """What is left when the next call was counted too, after an estimate of 100 for the first: whatever its status."""
    limited = Limited(world, Limits(cost_per_s=0.001, cost_burst=1000.0))
    world.calls.error = {500: FunctionRaised("no"), 503: Unavailable("no"), 408: DeadlineExceeded("no")}[status]
    world.calls.fails_after_ms = fails_after_ms
    answer = await limited.client.post(PATH, json=body)
    assert answer.headers["ratelimit"].startswith('"cost";r=900')

    world.calls.error = None
    after = await limited.call()
    assert after.headers["ratelimit"].startswith(f'"cost";r={left}')


async def test_cost_is_corrected_when_the_call_was_answered(world: World) -> None:
    """To what it took, 1 ms; the answer that is repeated to a key took nothing."""
    limited = Limited(world, Limits(cost_per_s=0.001, cost_burst=1000.0))
    key = {"idempotency-key": "k"}
    left = [(await limited.client.post(PATH, json=BODY, headers=key)).headers["ratelimit"] for _ in range(3)]

    assert [text.partition(";t=")[0] for text in left] == ['"cost";r=900', '"cost";r=998', '"cost";r=998']


async def test_a_call_whose_caller_hung_up_counts_until_it_has_ended(world: World) -> None:
    """It keeps its permit while it runs on, and is charged for all of that then."""
    limited = Limited(world, Limits(cost_per_s=0.001, cost_burst=1000.0, concurrency=1))
    world.calls.hold, world.calls.runs_on = asyncio.Event(), True
    first = asyncio.create_task(limited.call())
    await wait_all_tasks_blocked()
    first.cancel()
    await asyncio.wait([first])
    refused = await limited.call()
    assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["concurrency"])

    (call,) = world.calls.seen
    assert call.usage is not None
    call.usage.close(700.0)
    world.calls.hold.set()

    after = await limited.call()
    assert after.status_code == 429  # 300 are left, and the next is taken to cost 700
    assert after.json()["violated-policies"] == ["cost"]
    assert limited.limiter.home.statistics().permits == 0


async def test_a_larger_body_than_the_tenant_may_send_is_refused(world: World) -> None:
    """By its announced length; the nearest limit holds, the platform's own stays."""
    limited = Limited(world, NO_LIMITS, Limits(payload_bytes=30))

    assert (await limited.call()).status_code == 200
    large = await limited.client.post(PATH, json={"input": {"name": "x" * 30}})

    assert (large.status_code, large.json()["code"], large.json()["limit"]) == (413, "too_large", 30)


async def test_without_a_home_the_answer_is_503(world: World) -> None:
    """Nobody can say whether it would be too much: it does not run, and comes again after the takeover."""
    limited = Limited(world, Limits(requests_per_s=1.0))
    limited.limiter.refusal = lambda policy: Admission("acme", "", policy, error=unreachable(2.0))

    answer = await limited.call()

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
    assert answer.headers["ratelimit-policy"] == '"requests";q=1;w=1'
    assert "ratelimit" not in answer.headers
    assert world.services.metrics.calls["error", "starting"] == 1


def generation() -> MethodSpec:
    """A method whose document is one of generation."""
    names = {"prompt": {"type": "string"}, "max_tokens": {"type": ["integer", "null"]}}
    return method(attribute="generate", input_schema={"type": "object", "properties": names})


def ask(prompt: str, **more: object) -> dict[str, object]:
    return {"input": {"prompt": prompt} | more}


async def test_a_call_counts_the_tokens_that_it_asks_for_and_then_those_it_took(world: World) -> None:
    """A prompt of 397 bytes with its head and 500 for the answer; what they really were stands when it has ended."""
    limited = Limited(world, Limits(tokens_per_s=0.001, tokens_burst=1_000.0), deployed=generation())
    world.calls.hold, counted = asyncio.Event(), 40
    first = asyncio.create_task(limited.client.post(PATH, json=ask("x" * 397, max_tokens=500)))
    await wait_all_tasks_blocked()
    (call,) = world.calls.seen
    refused = await limited.client.post(PATH, json=ask("x" * 397, max_tokens=500))
    document = refused.json()
    assert (refused.status_code, document["code"], document["violated-policies"]) == (429, "rate_limited", ["tokens"])
    assert document["limits"][0] | {"burst": None} == {
        "limit": "tokens_per_s", "tenant": "acme", "allowed": 0.001, "burst": None, "left": 400.0,
    }  # fmt: skip
    told = {name: refused.headers[f"x-ratelimit-{name}-tokens"] for name in ("limit", "remaining", "reset")}
    assert told == {"limit": "1000", "remaining": "400", "reset": "166h40m0s"}
    assert 200_000 <= int(refused.headers["retry-after"]) <= 220_000  # 200 lack, at one in 1,000 s

    assert call.usage is not None
    call.usage.tokens = counted
    world.calls.hold.set()
    answer = await first
    assert (answer.status_code, answer.headers["x-ratelimit-remaining-tokens"]) == (200, "400")
    after = await limited.client.post(PATH, json=ask("", max_tokens=0))
    assert after.headers["x-ratelimit-remaining-tokens"] == "960"


async def test_a_call_has_no_more_tokens_than_one_may_have(world: World) -> None:
    """Nobody is asked for it; one that names no length of its answer gets the longest."""
    limited = Limited(world, NO_LIMITS, Limits(prompt_tokens=10, output_tokens=20), deployed=generation())
    long = await limited.client.post(PATH, json=ask("x" * 100))
    much = await limited.client.post(PATH, json=ask("x", max_tokens=21), headers={"prefer": "respond-async"})
    for answer, limit, allowed, current in ((long, "prompt_tokens", 10, 26), (much, "output_tokens", 20, 21)):
        document = answer.json()
        assert (answer.status_code, document["code"]) == (400, "too_many_tokens")
        assert document["limits"] == [
            {"limit": limit, "tenant": "acme", "allowed": float(allowed), "current": float(current)}
        ]

    unsaid = await limited.client.post(PATH, json=ask("x"))
    assert unsaid.json()["output"] == {"prompt": "x", "max_tokens": 20}
