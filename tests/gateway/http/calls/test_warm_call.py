"""Calls that need no task: they are answered as all others are, and leave nothing behind however they end."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pilotlight_core.model.errors import Conflict, FunctionRaised, PilotlightError, Unauthenticated, Unavailable
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.rollouts.rollout_record import Rollout, RolloutRecord, RolloutState
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import BegunCall, CallWaiter
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.http.calls.warm_call import WarmCall
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.limits.limit_policy import LimitPolicies
from pilotlight_gateway.limits.limits_port import MemoryLimiter
from tests.example_counts import examples
from tests.gateway.http.memory_connection import Answer, MemoryConnection
from tests.gateway.world import Parts, World, function
from tests.waiting import until

ROUTE = "/v1/functions/{ref}/calls"
BODY = b'{"input": {"name": "Ada"}}'


def request(key: object, body: bytes = BODY, *, path: str = "/v1/functions/shop.hello/calls", **headers: str) -> bytes:
    """A call; `headers` with `_` for `-`."""
    lines = {"host": "gateway", "authorization": f"Bearer {key}", "content-length": str(len(body))}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def json_of(answer: Answer) -> Any:
    return msgspec.json.decode(answer.body)


@pytest.fixture
def parts(world: World) -> Parts:
    world.deploy(function())
    return world.services


async def known(world: World) -> MemoryConnection:
    """A connection over which a call has gone, so that the next is warm."""
    connection = MemoryConnection(world.app)
    connection.send(request(world.key))
    assert (await connection.answer()).status == 200
    await until(lambda: not connection.at_work)
    return connection


def check_nothing_is_left(parts: Parts) -> None:
    """No call is inside, and nothing of it is counted."""
    assert (len(parts.gate), len(parts.requests), parts.budget.used) == (0, 0, 0)
    parts.budget.check_integrity()


async def held_call(world: World) -> MemoryConnection:
    """A warm call that has no result yet."""
    connection = await known(world)
    world.calls.hold = asyncio.Event()
    connection.send(request(world.key))
    assert not connection.at_work
    assert len(world.services.gate) == 1
    await until(lambda: len(world.calls.seen) == 2)
    return connection


def release(world: World) -> None:
    assert world.calls.hold is not None
    world.calls.hold.set()


async def test_a_warm_call_has_no_task_and_the_answer_of_any_other(world: World, parts: Parts) -> None:
    """Once its key is trusted. Its head is read once, too: the second such request passes no parser."""
    connection = await known(world)
    for _ in range(3):
        connection.send(request(world.key))
        assert not connection.at_work
        answer = await connection.answer()
        assert json_of(answer)["output"] == {"name": "Ada"}
        named = dict(answer.headers)
        assert named[b"pilotlight-call-id"] == named[b"x-request-id"] == json_of(answer)["id"].encode()
    assert parts.metrics.requests == {(ROUTE, 200): 4}
    assert +Counter(parts.metrics.calls) == {("ok", ""): 4}
    check_nothing_is_left(parts)


async def test_an_answer_names_the_home_of_its_function_elsewhere(world: World, parts: Parts) -> None:
    """On every way that a call can go, and with errors too; where the home is here, no answer does."""
    connection, home = await known(world), b"http://gateway-2:8470"

    async def answers(suffix: str) -> list[tuple[int, bytes | None]]:
        """Status and named home of a warm call, one with a key for idempotency, and a stream."""
        found = []
        for sent in (request(world.key), request(world.key, idempotency_key=f"once-{suffix}")):
            connection.send(sent)
            answer = await connection.answer()
            found.append((answer.status, dict(answer.headers).get(b"pilotlight-home")))
        async with world.client(world.key) as client:
            streamed = await client.post(
                "/v1/functions/shop.hello/calls", content=BODY, headers={"accept": "text/event-stream"}
            )
        named = streamed.headers.get("pilotlight-home")
        return [*found, (streamed.status_code, named.encode() if named is not None else None)]

    assert await answers("here") == 3 * [(200, None)]
    world.calls.home = home
    assert await answers("there") == 3 * [(200, home)]
    world.calls.error = FunctionRaised("it raised")
    assert await answers("failed") == 3 * [(500, home)]


@pytest.mark.parametrize("pieces", [1, 7, 60])
async def test_a_body_may_come_in_pieces(world: World, parts: Parts, pieces: int) -> None:
    """It is waited for by a task then; the call is the same."""
    connection = await known(world)
    whole = request(world.key)
    step = -(-len(whole) // pieces)
    for start in range(0, len(whole), step):
        connection.send(whole[start : start + step])
        await asyncio.sleep(0)
    assert (await connection.answer()).status == 200
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def test_requests_that_were_sent_together_are_answered_in_order(world: World, parts: Parts) -> None:
    """Only the first of them needs no task."""
    connection = await known(world)
    names = ["a", "b", "c"]
    bodies = [b'{"input": {"name": "%s"}}' % name.encode() for name in names]
    connection.send(b"".join(request(world.key, body) for body in bodies))
    assert [json_of(await connection.answer())["output"]["name"] for _ in names] == names
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def test_what_follows_a_call_that_runs_waits_for_its_answer(world: World, parts: Parts) -> None:
    """Also where its bytes are known: it is not the turn of the second yet."""
    connection = await held_call(world)
    connection.send(request(world.key))
    assert len(parts.gate) == 1
    release(world)
    assert [(await connection.answer()).status for _ in range(2)] == [200, 200]
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def test_a_connection_that_is_to_close_is_closed_with_the_answer(world: World, parts: Parts) -> None:
    """And says so; a request with these bytes is parsed each time."""
    connection = await known(world)
    connection.send(request(world.key, connection="close"))
    assert (b"connection", b"close") in (await connection.answer()).headers
    assert connection.transport.closed
    check_nothing_is_left(parts)


@pytest.mark.parametrize(
    ("error", "status"), [(FunctionRaised("ValueError: no"), 500), (Conflict("The id stands for another."), 409)]
)
async def test_a_call_that_fails_is_answered_with_its_error(
    world: World, parts: Parts, error: PilotlightError, status: int
) -> None:
    connection = await known(world)
    world.calls.error = error
    connection.send(request(world.key))
    answer = await connection.answer()
    assert (answer.status >= 400, json_of(answer)["code"]) == (True, error.wire_code)
    assert parts.metrics.calls["error", error.wire_code] == 1
    check_nothing_is_left(parts)


async def test_a_call_whose_split_was_stale_is_answered_by_the_version_that_holds(world: World, parts: Parts) -> None:
    """Its client notices nothing, and it counts as one call."""
    connection = await known(world)
    (old,) = world.registry.apps["acme", "shop"].functions.values()
    rollout = Rollout(
        id="rol_1", number=1, control={"hello": old}, canary={"hello": "ver_gone"}, salt=b"s" * 32,
        state=RolloutState.ROLLING_BACK, since=0.0, started_at=0.0, by="k",
    )  # fmt: skip
    record = RolloutRecord(tenant="acme", app="shop", revision=3, rollout=rollout)
    world.registry.rollout_records["acme", "shop"] = record
    refused: list[PreparedCall] = []

    def refuse(call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        refused.append(call)
        waiter.failed(Conflict("split anew", code="stale_split"))
        return MagicMock(**{"end.return_value": None})

    world.calls.begin = refuse  # type: ignore[method-assign]
    connection.send(request(world.key))
    answer = await connection.answer()

    assert (answer.status, json_of(answer)["output"]) == (200, {"name": "Ada"})
    assert world.calls.seen[-1].call_id == refused[0].call_id
    assert +Counter(parts.metrics.calls) == {("ok", ""): 2}
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def test_a_client_id_that_is_taken_leaves_no_place_behind(world: World, parts: Parts) -> None:
    """The call is refused as it begins: after its body was counted, and it had entered the gate."""
    connection = await known(world)

    def refuse(call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        raise Conflict("The id stands for another call.", field="id")

    world.calls.begin = refuse  # type: ignore[method-assign]
    connection.send(request(world.key))
    assert (await connection.answer()).status == 409
    check_nothing_is_left(parts)


async def test_a_bug_costs_its_call_a_500_and_the_connection_nothing(world: World, parts: Parts) -> None:
    """As the call begins, and as its result comes."""
    connection = await known(world)

    def break_off(call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        raise RuntimeError("a bug")

    begin, world.calls.begin = world.calls.begin, break_off  # type: ignore[method-assign]
    connection.send(request(world.key))
    assert json_of(await connection.answer())["code"] == "internal"
    world.calls.begin = begin  # type: ignore[method-assign]
    ended, parts.metrics.call_ended = parts.metrics.call_ended, None  # type: ignore[assignment, method-assign]
    connection.send(request(world.key))
    assert json_of(await connection.answer())["code"] == "internal"
    parts.metrics.call_ended = ended  # type: ignore[method-assign]
    connection.send(request(world.key))
    assert (await connection.answer()).status == 200
    check_nothing_is_left(parts)


async def test_a_client_that_hangs_up_cancels_its_call(world: World, parts: Parts) -> None:
    connection = await held_call(world)
    connection.hang_up()
    await until(lambda: world.calls.cancelled)
    assert parts.metrics.requests[ROUTE, 499] == 1
    parts.recorder.tallies.fold()
    (tallied,) = parts.recorder.tallies.each()
    assert (tallied.counts.gone, tallied.counts.inside) == (1, 0)
    check_nothing_is_left(parts)


async def test_draining_waits_for_warm_calls_and_then_answers_them(world: World, parts: Parts) -> None:
    """New ones are refused meanwhile."""
    connection = await held_call(world)
    assert not await parts.gate.drain(0.0)
    other = MemoryConnection(world.app)
    other.send(request(world.key))
    assert json_of(await other.answer())["code"] == "draining"
    assert await parts.gate.abort(1.0) == 1
    answer = await connection.answer()
    assert (answer.status, json_of(answer)["code"]) == (503, "draining")
    await until(lambda: world.calls.cancelled)
    check_nothing_is_left(parts)


async def test_a_key_that_ends_ends_its_warm_calls(world: World, parts: Parts) -> None:
    connection = await held_call(world)
    assert parts.requests.end_revoked(lambda _: Unauthenticated("The API key was revoked.")) == 1
    assert (await connection.answer()).status == 401
    await until(lambda: world.calls.cancelled)
    check_nothing_is_left(parts)


@pytest.mark.parametrize("size", [10, PIECE_BYTES + 1, 300_000])
async def test_an_answer_waits_for_a_client_that_does_not_read(world: World, parts: Parts, size: int) -> None:
    """In a task of the server's, inside the gate, and counted; it is sent whole when the client reads on."""
    connection = await known(world)
    world.calls.output = msgspec.msgpack.encode("x" * size)
    connection.stop_reading()
    connection.send(request(world.key))
    await until(lambda: connection.at_work)
    for _ in range(20):
        await asyncio.sleep(0)
    assert connection.transport.written == b""
    assert len(parts.gate) == 1
    async with parts.workers.running():
        connection.read_on()
        assert json_of(await connection.answer())["output"] == "x" * size
    await until(lambda: not connection.at_work)
    assert parts.metrics.requests == {(ROUTE, 200): 2}
    check_nothing_is_left(parts)


async def test_a_client_that_never_reads_and_goes_leaves_nothing_behind(world: World, parts: Parts) -> None:
    connection = await known(world)
    world.calls.output = msgspec.msgpack.encode("x" * (PIECE_BYTES + 1))
    connection.stop_reading()
    connection.send(request(world.key))
    await until(lambda: connection.at_work)
    connection.hang_up()
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def slow_answer(world: World) -> MemoryConnection:
    """An answer that a task has to send, which has not taken its first step."""
    connection = await held_call(world)
    connection.stop_reading()
    release(world)
    await until(lambda: connection.at_work)
    return connection


async def test_a_slow_answer_that_has_not_begun_says_that_the_process_ends(world: World, parts: Parts) -> None:
    connection = await held_call(world)
    connection.stop_reading()
    started: list[Any] = []
    start_task, connection.protocol.start_task = connection.protocol.start_task, started.append
    release(world)
    await until(lambda: started)
    aborting = asyncio.create_task(parts.gate.abort(5.0))
    await asyncio.sleep(0)
    start_task(started[0])
    connection.read_on()
    assert await aborting == 1
    assert (await connection.answer()).status == 503
    check_nothing_is_left(parts)


async def test_a_slow_answer_is_broken_off_when_the_process_ends(world: World, parts: Parts) -> None:
    """Its client still does not read: only a closed connection tells it."""
    connection = await slow_answer(world)
    for _ in range(5):
        await asyncio.sleep(0)
    assert await parts.gate.abort(5.0) == 1
    await until(lambda: connection.transport.closed)
    assert not connection.at_work
    check_nothing_is_left(parts)


async def test_limits_count_a_warm_call_until_it_has_ended(world: World, parts: Parts) -> None:
    """One permit: a second call is refused meanwhile, with the headers of limits, and passes afterwards."""
    limited = LimitsRecord(tenant="acme", limits=Limits(concurrency=1))
    world.registry.limit_records["acme"] = limited
    parts.limits = MemoryLimiter(LimitPolicies(world.registry.limits))
    connection = await held_call(world)
    other = MemoryConnection(world.app)
    other.send(request(world.key))
    refused = await other.answer()
    assert (refused.status, json_of(refused)["code"]) == (429, "rate_limited")
    assert b"ratelimit-policy" in dict(refused.headers)
    release(world)
    assert b"ratelimit-policy" in dict((await connection.answer()).headers)
    other.send(request(world.key))
    assert (await other.answer()).status == 200
    check_nothing_is_left(parts)


async def test_a_body_that_takes_long_to_check_counts_once(world: World, parts: Parts) -> None:
    """The worker reads it: what was counted under the tenant's limits goes along."""
    world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(requests_per_s=0.001, burst=2))
    parts.limits = MemoryLimiter(LimitPolicies(world.registry.limits))
    connection = await known(world)
    body = msgspec.json.encode({"input": {"name": "x", "times": [1] * 9_000}})
    async with parts.workers.running():
        connection.send(request(world.key, body))
        assert (await connection.answer()).status == 200
    connection.send(request(world.key))
    assert (await connection.answer()).status == 429
    await until(lambda: not connection.at_work)
    check_nothing_is_left(parts)


async def test_a_deploy_shows_with_the_next_call(world: World, parts: Parts) -> None:
    """Where a ref leads is remembered until a record changes."""
    connection = await known(world)
    del world.registry.apps["acme", "shop"]
    for callback in world.registry.on_change:
        callback("app.acme.shop", None)
    connection.send(request(world.key))
    assert (await connection.answer()).status == 404


VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.lists(st.integers(), max_size=3))
BODIES = st.one_of(
    st.binary(max_size=30),
    st.fixed_dictionaries(
        {},
        optional={
            "input": st.dictionaries(st.sampled_from(["name", "times", "more"]), VALUES, max_size=3),
            "parameters": st.dictionaries(st.sampled_from(["name", "times"]), VALUES, max_size=1),
            "id": st.sampled_from(["cid_12345678", "nonsense"]),
            "method": st.sampled_from(["", "other"]),
            "deadline_ms": st.sampled_from([1000, 0, -1, 10**9]),
            "run_at": st.just("2030-01-01T00:00:00Z"),
            "unknown": VALUES,
        },
    ).map(msgspec.json.encode),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "accept": st.sampled_from(["*/*", "application/json", "application/msgpack", "image/png", "x" * 300]),
        "content_type": st.sampled_from(["application/json", "application/msgpack", "text/csv"]),
        "pilotlight_priority": st.sampled_from(["batch", "standard", "urgent"]),
        "traceparent": st.just("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        "prefer": st.just("wait=1"),
    },
)
PATHS = st.sampled_from(
    ["shop.hello", "shop.hello@v1", "shop.nothing", "shop%2Ehello", "shop", "other:shop.hello", "a/b"]
)
ERRORS = st.sampled_from([None, FunctionRaised("ValueError: no"), Conflict("twice")])
UNLIKE = {b"x-request-id", b"pilotlight-call-id", b"retry-after", b"retry-after-ms"}
"""Headers with ids, or with chance in them."""


def comparable(answer: Answer) -> tuple[int, list[tuple[bytes, bytes]], Any]:
    """An answer without ids and times."""
    body = answer.body
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        document = msgspec.msgpack.decode(body)
    for name in ("id", "request_id", "latency", "retry_after"):
        document.pop(name, None)
    headers = [(name, b"" if name in UNLIKE | {b"content-length"} else value) for name, value in answer.headers]
    return answer.status, headers, document


@given(body=BODIES, headers=HEADERS, ref=PATHS, error=ERRORS, room=st.sampled_from([10**6, 20]))
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_every_request_has_the_same_answer_with_a_task_and_without(
    tmp_path_factory: pytest.TempPathFactory,
    body: bytes,
    headers: dict[str, str],
    ref: str,
    error: PilotlightError | None,
    room: int,
) -> None:
    """Good, bad and refused ones: status, headers in their order, body, and what is counted."""
    world = World(tmp_path_factory.mktemp("world"))
    try:
        world.deploy(function())
        path, sent = f"/v1/functions/{ref}/calls", []
        world.services.budget = ByteBudget(limit=2 * room)
        for way in ("warm", "exchange"):
            world.calls.error = None
            app: Any = world.app
            world.services.budget.limit = 10**6
            warm = MemoryConnection(app)
            warm.send(request(world.key))
            await warm.answer()
            await until(lambda warm=warm: not warm.at_work)  # type: ignore[misc]
            world.calls.error, world.services.budget.limit = error, 2 * room
            before = Counter(world.services.metrics.calls), Counter(world.services.metrics.requests)
            if way == "exchange":
                app.whole = None
            connection = MemoryConnection(app)
            connection.send(request(world.key, body, path=path, **headers))
            answer = await connection.answer()
            await until(lambda connection=connection: not connection.at_work)  # type: ignore[misc]
            check_nothing_is_left(world.services)
            metrics = world.services.metrics
            counted = Counter(metrics.calls) - before[0], Counter(metrics.requests) - before[1]
            sent.append((comparable(answer), counted))
        assert sent[0] == sent[1]
    finally:
        world.close()


def test_a_call_that_is_refused_within_its_beginning_is_ended_too() -> None:
    """A full home refuses within `begin` when that takes the drivers' turn: the call must leave the book too."""
    parts, connection, begun = MagicMock(), MagicMock(), MagicMock()
    parts.calls.address_of_home.return_value = b""
    connection.answer.return_value = True

    def begin(_: object, waiter: WarmCall) -> MagicMock:
        waiter.failed(Unavailable("It is full."))
        return begun

    parts.calls.begin = begin
    call = WarmCall(parts, connection, MagicMock(), MagicMock(), MagicMock(), 0.0)
    call.call = MagicMock(split=-1)
    call._run(call.call)
    connection.answer.assert_called_once()
    begun.end.assert_called_once_with()
