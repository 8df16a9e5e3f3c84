"""Calls over HTTP: what comes in, what goes out, and what happens when the caller leaves."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.api.call_api import CallResponse
from pilotlight_core.model.errors import FunctionRaised
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import MAX_RETRY_PAUSE_S, MethodSpec, Priority
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.calls.call_port import ChunkEvent
from pilotlight_gateway.http.calls.call_endpoint import wants_async
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, function, generator, packed
from tests.waiting import until

HELLO_CALL = "/v1/functions/shop.hello/calls"
MSGPACK = {"content-type": "application/msgpack", "accept": "application/msgpack"}


async def test_an_answer_says_all_there_is_to_know(world: World) -> None:
    """Output, resolved version, usage in money, latency by stage that sums to the total, and its ids."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, json={"input": {"name": "x", "times": [1]}})

    assert answer.status_code == 200
    body = msgspec.json.decode(answer.content, type=CallResponse)
    assert body.output == {"name": "x", "times": [1]}
    assert (body.version, body.cold_start) == ("shop.hello@v1", None)
    assert (body.usage.ns, body.usage.price, body.usage.cost) == (1_000_000, "cpu", "0.000000013100")
    assert {"gateway", "queue", "execute", "respond"} <= body.latency.stages.keys()
    assert answer.headers["pilotlight-call-id"] == body.id
    assert answer.headers["x-request-id"] == body.request_id
    assert world.services.metrics.calls["ok", ""] == 1


async def test_msgpack_keeps_what_json_cannot_say(world: World) -> None:
    """Bytes and arrays pass through unopened, in and out."""
    world.deploy(function("raw", MethodSpec(name="", attribute="raw")))
    arguments = {"data": b"\x00\xff", "array": msgspec.msgpack.Ext(1, b"header and data")}
    async with world.client() as client:
        answer = await client.post(
            "/v1/functions/shop.raw/calls", content=msgspec.msgpack.encode({"input": arguments}), headers=MSGPACK
        )

    assert answer.headers["content-type"] == "application/msgpack"
    assert msgspec.msgpack.decode(answer.content)["output"] == arguments
    assert msgspec.msgpack.decode(world.calls.seen[0].input) == arguments


async def test_json_callers_see_typed_values_as_json(world: World) -> None:
    """Bytes as base64, NaN as null, an array as nested lists, odd keys as text."""
    from pilotlight_core.model.values import ArrayHeader

    header = msgspec.msgpack.encode(ArrayHeader("uint8", (2, 2)))
    array = msgspec.msgpack.Ext(1, len(header).to_bytes(2, "little") + header + bytes([1, 2, 3, 4]))
    (world.calls.output,) = packed({"b": b"abc", "n": float("nan"), "a": array, "k": {None: 1}})
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, json={"input": {"name": "x"}})

    assert answer.json()["output"] == {"b": "YWJj", "n": None, "a": [[1, 2], [3, 4]], "k": {"None": 1}}


@pytest.mark.parametrize(
    ("body", "status", "code", "field"),
    [
        (b'{"input": {', 400, "bad_request", None),
        (b'{"input": {"name": 1}}', 422, "bad_input", "input.name"),
        (b'{"input": {}}', 422, "bad_input", "input.name"),
        (b'{"parameters": {"name": 1}}', 422, "bad_input", "parameters.name"),
        (b'{"input": {"name": "x"}, "inputs": {}}', 422, "bad_input", "inputs"),
        (b'{"input": {"name": "x"}, "method": "other"}', 422, "bad_input", "method"),
        (b'{"input": {"name": "x"}, "deadline_ms": 0}', 422, "bad_input", "deadline_ms"),
        (b'{"input": {"name": ' + b"[" * 500 + b"]" * 500 + b"}}", 422, "bad_input", "input"),
    ],
)
async def test_a_wrong_request_never_reaches_a_container(
    world: World, body: bytes, status: int, code: str, field: str | None
) -> None:
    """It is refused with its field, and counted."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, content=body)

    document = answer.json()
    assert (answer.status_code, document["code"], document.get("field")) == (status, code, field)
    assert world.calls.seen == []
    assert world.services.metrics.calls["error", code] == 1


async def test_a_call_takes_no_longer_than_its_tenant_may(world: World) -> None:
    """Without a deadline it has the limit; a longer deadline is refused, and of a job it is no time to run."""
    world.deploy(function(timeout=300.0))
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(timeout_s=100.0))
    async with world.client() as client:
        plain = await client.post(HELLO_CALL, json={"input": {"name": "x"}})
        short = await client.post(HELLO_CALL, json={"input": {"name": "x"}, "deadline_ms": 99_000})
        long = await client.post(HELLO_CALL, json={"input": {"name": "x"}, "deadline_ms": 101_000})
        body = {"input": {"name": "x"}, "deadline_ms": 101_000}
        job = await client.post(HELLO_CALL, json=body, headers={"prefer": "respond-async"})

    assert (plain.status_code, short.status_code) == (200, 200)
    assert [round(call.deadline_at - call.arrived_at) for call in world.calls.seen] == [100, 99]
    assert (long.status_code, long.json()["field"]) == (422, "deadline_ms")
    assert long.json()["limits"] == [{"limit": "timeout_s", "tenant": "acme", "allowed": 100.0, "current": 101.0}]
    assert (job.status_code, job.json()["field"], job.json()["limits"][0]["current"]) == (422, "timeout", 300.0)


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"content-type": "text/plain"}, 415, "unsupported_media_type"),
        ({"accept": "image/png"}, 406, "not_acceptable"),
        ({"pilotlight-priority": "urgent"}, 422, "bad_input"),
    ],
)
async def test_headers_that_make_no_sense_are_refused(
    world: World, headers: dict[str, str], status: int, code: str
) -> None:
    """By the code for it."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, content=b'{"input": {"name": "x"}}', headers=headers)

    assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/functions/shop.bye/calls", 404, "unknown_function"),
        ("/v1/functions/shop.hello@v9/calls", 404, "unknown_version"),
        ("/v1/functions/rival:shop.hello/calls", 404, "unknown_function"),
        ("/v1/functions/nonsense/calls", 422, "bad_input"),
        ("/v1/functions//calls", 404, "not_found"),
        ("/v1/functions/calls", 404, "not_found"),
        ("/v1/functions/a/b/calls", 404, "not_found"),
    ],
)
async def test_what_is_not_there_cannot_be_called(world: World, path: str, status: int, code: str) -> None:
    """Another tenant's function looks like none."""
    world.deploy(function())
    world.deploy(function(), tenant="rival")
    async with world.client() as client:
        answer = await client.post(path, json={})

    assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_who_may_call_is_told_by_the_key(world: World) -> None:
    """401 without one, 403 without the scope."""
    world.deploy(function())
    for key, status, code in ("", 401, "unauthenticated"), (world.add_key("acme", "read"), 403, "forbidden"):
        async with world.client(key) as client:
            answer = await client.post(HELLO_CALL, json={"input": {"name": "x"}})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert world.calls.seen == []


async def test_what_a_call_is_told_goes_to_whoever_runs_it(world: World) -> None:
    """Deadline from arrival, class, ids and trace; the deadline is at most what the function may take."""
    world.deploy(function(timeout=2.0, startup_timeout=3.0, priority=Priority.STANDARD))
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with world.client() as client:
        for deadline in (1_500, 60_000, None):
            await client.post(
                HELLO_CALL,
                json={"input": {"name": "x"}, "id": "cid_12345678", "deadline_ms": deadline},
                headers={"pilotlight-priority": "batch", "traceparent": trace},
            )

    waits = [call.deadline_at - call.arrived_at for call in world.calls.seen]
    assert waits == pytest.approx([1.5, 5.0, 5.0])
    call = world.calls.seen[0]
    assert (call.client_id, call.priority, call.traceparent) == ("cid_12345678", Priority.BATCH, trace)
    assert (call.tenant, call.stream, call.version.ref) == ("acme", False, "shop.hello@v1")


async def test_a_caller_who_names_no_deadline_waits_for_every_try(world: World) -> None:
    """Start, three tries that may take the timeout each, and the longest pauses between them."""
    world.deploy(function(timeout=2.0, startup_timeout=3.0, retries=2))
    async with world.client() as client:
        await client.post(HELLO_CALL, json={"input": {"name": "x"}})

    (call,) = world.calls.seen
    assert call.deadline_at - call.arrived_at == pytest.approx(3.0 + 3 * 2.0 + 2 * MAX_RETRY_PAUSE_S)


async def test_a_class_is_called_by_method(world: World) -> None:
    """Each method has its own schema; without a name there must be only one."""
    add = MethodSpec(name="add", attribute="add", input_schema={"type": "object", "required": ["n"]})
    world.deploy(function("math", add, MethodSpec(name="zero", attribute="zero"), is_class=True))
    async with world.client() as client:
        path = "/v1/functions/shop.math/calls"
        answers = [
            await client.post(path, json={"method": "zero"}),
            await client.post(path, json={"method": "add"}),
            await client.post(path, json={}),
        ]

    assert [answer.status_code for answer in answers] == [200, 422, 422]
    assert [answer.json().get("field") for answer in answers[1:]] == ["input.n", "method"]


async def test_an_answer_that_breaks_its_promise_is_bad_output(world: World) -> None:
    """The caller hears that the function is at fault, in either format; unreadable answers too."""
    method = MethodSpec(name="", attribute="f", output_schema={"type": "string"})
    world.deploy(function("f", method))
    async with world.client() as client:
        for output, accept in (
            (packed(3), "application/json"),
            (packed(3), MSGPACK["accept"]),
            ([b"\xc1"], "*/*"),
            ([b"\xa1\xff"], "*/*"),
        ):
            (world.calls.output,) = output
            answer = await client.post("/v1/functions/shop.f/calls", headers={"accept": accept})
            assert (answer.status_code, answer.json()["code"]) == (500, "bad_output")


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_an_array_that_is_none_is_the_functions_fault(world: World, accept: str) -> None:
    """`bad_output`, not the caller's bad input: the caller sent nothing wrong."""
    (world.calls.output,) = packed({"a": msgspec.msgpack.Ext(1, b"\x01\x00?nonsense")})
    world.deploy(function())
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, json={"input": {"name": "x"}}, headers={"accept": accept})

    assert (answer.status_code, answer.json()["code"]) == (500, "bad_output")
    assert "field" not in answer.json()


async def test_a_large_answer_is_sent_in_pieces_and_counted_until_it_is_read(world: World) -> None:
    """A client that does not read holds a part of its tenant's share, which is free when it leaves."""
    (world.calls.output,) = packed(b"x" * 10**6)
    world.deploy(function())
    budget = world.services.budget
    for reads in (True, False):
        wire = Wire(pieces=[b'{"input": {"name": "x"}}'], reads=reads)
        headers = {"authorization": f"Bearer {world.key}", "accept": "application/msgpack"}
        asking = asyncio.create_task(ask(world.app, wire, "POST", HELLO_CALL, **headers))
        if reads:
            await asking
            assert msgspec.msgpack.decode(wire.body)["output"] == b"x" * 10**6
            assert max(len(message.get("body", b"")) for message in wire.sent) == PIECE_BYTES
        else:
            await until(lambda: len(wire.sent) == 2)  # noqa: B023 - it is waited for here
            assert 10**6 < budget.used < 1.01 * 10**6
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        assert budget.used == 0


async def test_answers_beyond_the_tenants_share_are_refused(world: World) -> None:
    """In every way in which an answer can be large: as `overloaded`, and nothing stays counted."""
    (world.calls.output,) = packed(b"x" * 10**6)
    world.services.budget.limit = 10**6
    world.calls.events = [ChunkEvent(seq=n, data=data) for n, data in enumerate(packed(*["y" * 90_000] * 9), 1)]
    world.deploy(function(), function("g", generator()))
    async with world.client() as client:
        answers = [
            await client.post(HELLO_CALL, json={"input": {"name": "x"}}),
            await client.post("/v1/functions/shop.g/calls"),
        ]
        world.calls.events = []
        headers = {"accept": "text/event-stream"}
        streamed = await client.post(HELLO_CALL, json={"input": {"name": "x"}}, headers=headers)

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(503, "overloaded")] * 2
    assert '"code":"overloaded"' in streamed.text  # a problem, or an event where the stream had begun already
    assert "tenant acme already holds" in answers[0].json()["detail"]
    assert world.services.budget.used == 0


async def test_a_traceback_is_for_the_owner(world: World) -> None:
    """The caller owns the function here, so it gets the text that the function's process printed."""
    world.deploy(function())
    world.calls.error = FunctionRaised("ValueError: no", traceback="Traceback (most recent call last): …")
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, json={"input": {"name": "x"}})

    assert answer.json()["traceback"].startswith("Traceback")


async def test_a_generator_called_for_one_answer_gives_a_list(world: World) -> None:
    """All that it yields, checked piece by piece; in either format."""
    world.deploy(function("g", generator(output_schema={"type": "integer"})))
    path = "/v1/functions/shop.g/calls"
    world.calls.events = [ChunkEvent(seq=n, data=data) for n, data in enumerate(packed(1, 2, 3), 1)]
    async with world.client() as client:
        assert (await client.post(path)).json()["output"] == [1, 2, 3]
        binary = await client.post(path, headers={"accept": "application/msgpack"})
        assert msgspec.msgpack.decode(binary.content)["output"] == [1, 2, 3]
        world.calls.events.append(ChunkEvent(seq=4, data=next(iter(packed("four")))))
        assert (await client.post(path)).json()["code"] == "bad_output"


async def test_a_caller_that_hangs_up_cancels_its_call(world: World) -> None:
    """The call's task is cancelled, nothing is answered, and it is counted as closed by the client."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    wire = Wire(pieces=[b'{"input": {"name": "x"}}'])
    asking = asyncio.create_task(ask(world.app, wire, "POST", HELLO_CALL, authorization=f"Bearer {world.key}"))
    await until(lambda: world.calls.seen)

    wire.gone.set()
    await asking

    assert world.calls.cancelled == [world.calls.seen[0].call_id]
    assert wire.sent == []
    assert world.services.metrics.requests["/v1/functions/{ref}/calls", 499] == 1
    assert (world.services.budget.used, len(world.services.gate)) == (0, 0)
    world.services.recorder.tallies.fold()
    (tallied,) = world.services.recorder.tallies.each()
    assert (tallied.counts.arrivals, tallied.counts.gone, tallied.counts.inside) == (1, 1, 0)


async def test_an_unexpected_error_tells_nothing(world: World) -> None:
    """`internal`, with an id to report and none of the details."""
    world.deploy(function())
    world.calls.error = ValueError("secret detail")
    async with world.client() as client:
        answer = await client.post(HELLO_CALL, json={"input": {"name": "x"}})

    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "secret" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


async def test_cold_starts_are_told_and_counted(world: World) -> None:
    """The steps of the start that a call waited for."""
    world.deploy(function())
    world.calls.cold_start = {"bind": 20.0, "load": 80.0}
    async with world.client() as client:
        body: Any = (await client.post(HELLO_CALL, json={"input": {"name": "x"}})).json()

    assert body["cold_start"] == {"bind": 20.0, "load": 80.0}
    assert sum(world.services.metrics.cold_start.counts) == 1


@pytest.mark.parametrize(
    ("prefer", "wanted"),
    [
        (b"respond-async", True), (b"wait=5, Respond-Async", True), (b"respond-async;x=1", True),
        (b"respond-asynchronously", False), (b"wait=5", False), (b"", False), (b"x" * 10**6, False),
    ],
)  # fmt: skip
def test_a_request_prefers_a_job(prefer: bytes, wanted: bool) -> None:
    """With `respond-async` among its preferences, as RFC 7240 writes them."""
    assert wants_async(prefer) is wanted


async def test_a_job_that_is_submitted_is_no_call_that_is_inside(world: World) -> None:
    """Whether it is taken, or refused while a call goes on: what it is counted as is over with its request."""
    world.deploy(function())
    world.calls.hold = asyncio.Event()
    as_job, body = {"prefer": "respond-async"}, {"input": {"name": "x"}}
    async with world.client() as client:
        running = asyncio.ensure_future(client.post(HELLO_CALL, json=body))
        await until(lambda: bool(world.calls.seen))
        taken = await client.post(HELLO_CALL, json=body, headers=as_job)
        refused = await client.post(HELLO_CALL, json=body, headers=as_job | {"idempotency-key": " "})
        tallies = world.services.recorder.tallies
        tallies.fold()
        (counts,) = [each.counts for each in tallies.each()]
        inside = counts.inside
        world.calls.hold.set()
        await running
    assert (taken.status_code, refused.status_code, inside) == (202, 400, 1)
    assert (counts.arrivals, sum(counts.failures.values())) == (2, 1)
