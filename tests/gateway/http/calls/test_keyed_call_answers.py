"""`Idempotency-Key` over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from pilotlight_core.bus import connect
from pilotlight_core.model.errors import FunctionRaised, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_gateway.http.protocol.large_answers import PIECE_BYTES
from pilotlight_gateway.idempotency.bus_key_records import BusKeyRecords
from pilotlight_gateway.idempotency.key_record import KEPT_BYTES, CallOwner
from pilotlight_gateway.idempotency.keyed_calls import Idempotency
from pilotlight_gateway.idempotency.memory_key_records import MemoryKeyRecords
from tests.gateway.http.asgi import Wire, ask
from tests.gateway.world import World, function, generator, packed
from tests.waiting import until

PATH = "/v1/functions/shop.hello/calls"
BODY = {"input": {"name": "x"}}
ONE, TWO = CallOwner(name="one", instance="one-1"), CallOwner(name="two", instance="two-1")


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[tuple[World, World]]:
    """Two gateways with the same records and functions."""
    records, made = MemoryKeyRecords(), []
    for owner in (ONE, TWO):
        (tmp_path / owner.name).mkdir()
        world = World(tmp_path / owner.name)
        world.services.idempotency = Idempotency(records, owner=owner)
        world.deploy(function(), function("often", idempotent=True), function("tokens", generator()))
        made.append(world)
    made[1].calls.number = 1_000  # another gateway makes other ids
    yield made[0], made[1]
    for world in made:
        world.close()


def keyed(key: str = "k", **more: str) -> dict[str, str]:
    return {"idempotency-key": key} | more


async def test_the_first_answer_is_repeated_to_the_byte(worlds: tuple[World, World]) -> None:
    """By any gateway, with a header that says so and the call's own id; the call ran once."""
    one, two = worlds
    async with one.client() as here, two.client() as there:
        first = await here.post(PATH, json=BODY, headers=keyed())
        second = await there.post(PATH, json=BODY, headers=keyed('"k"'))

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.content == second.content
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert second.headers["content-type"] == "application/json"
    assert second.headers["pilotlight-call-id"] == first.headers["pilotlight-call-id"] == first.json()["id"]
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    assert len(one.calls.seen) + len(two.calls.seen) == 1
    assert not any(two.services.metrics.calls.values())


async def test_what_the_function_raised_is_repeated(worlds: tuple[World, World]) -> None:
    """As the problem document that it was, which the caller need not ask for again."""
    one, two = worlds
    one.calls.error = FunctionRaised("ValueError: no", traceback="Traceback…")
    async with one.client() as here, two.client() as there:
        first = await here.post(PATH, json=BODY, headers=keyed())
        second = await there.post(PATH, json=BODY, headers=keyed())

    assert (first.status_code, second.status_code) == (500, 500)
    assert second.json() == first.json()
    assert second.headers["content-type"] == "application/problem+json"
    assert second.headers["x-should-retry"] == "false"
    assert second.headers["idempotent-replayed"] == "true"
    assert two.calls.seen == []


async def test_a_call_that_was_not_taken_may_be_sent_again(worlds: tuple[World, World]) -> None:
    """With the same key: nothing of it ran."""
    one, two = worlds
    one.calls.error = Unavailable("No capacity.", retry_after=2.0)
    async with one.client() as here, two.client() as there:
        first = await here.post(PATH, json=BODY, headers=keyed())
        second = await there.post(PATH, json=BODY, headers=keyed())

    assert (first.status_code, first.headers["x-should-retry"], second.status_code) == (503, "true", 200)
    assert "idempotent-replayed" not in second.headers


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (PATH, {"input": {"name": "y"}}, {}),
        ("/v1/functions/shop.often/calls", BODY, {}),
        (PATH, BODY, {"accept": "application/msgpack"}),
    ],
)
async def test_a_key_that_stands_for_another_request_is_refused(
    worlds: tuple[World, World], path: str, body: object, headers: dict[str, str]
) -> None:
    """Another input, function or form of the answer."""
    one, two = worlds
    async with one.client() as here, two.client() as there:
        await here.post(PATH, json=BODY, headers=keyed())
        refused = await there.post(path, json=body, headers=keyed() | headers)

    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert refused.json()["error"]["param"] == "Idempotency-Key"
    assert two.calls.seen == []


async def test_how_long_the_caller_waits_is_no_part_of_the_request(worlds: tuple[World, World]) -> None:
    """A client that comes again has less time, and is the same client."""
    one, two = worlds
    async with one.client() as here, two.client() as there:
        await here.post(PATH, json=BODY | {"deadline_ms": 9000}, headers=keyed())
        second = await there.post(PATH, json=BODY | {"deadline_ms": 7000}, headers=keyed())

    assert second.headers["idempotent-replayed"] == "true"


async def test_tenants_do_not_see_each_others_keys(worlds: tuple[World, World]) -> None:
    """The same key of another tenant is another key."""
    one, _ = worlds
    one.deploy(function(), tenant="rival")
    async with one.client() as ours, one.client(one.add_key("rival", "invoke")) as theirs:
        await ours.post(PATH, json=BODY, headers=keyed())
        answer = await theirs.post(PATH, json={"input": {"name": "secret"}}, headers=keyed())

    assert (answer.status_code, answer.json()["output"]) == (200, {"name": "secret"})
    assert "idempotent-replayed" not in answer.headers


async def test_a_second_request_comes_again_or_waits(worlds: tuple[World, World]) -> None:
    """409 with Retry-After and the running call's id, which stock clients obey; with `Prefer: wait`, its answer."""
    one, two = worlds
    one.calls.hold = asyncio.Event()
    async with one.client() as here, two.client() as there, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(here.post(PATH, json=BODY, headers=keyed()))
        await until(lambda: bool(one.calls.seen))
        busy = await there.post(PATH, json=BODY, headers=keyed())
        waiting = tasks.create_task(there.post(PATH, json=BODY, headers=keyed(prefer="wait=30")))
        one.calls.hold.set()

    assert (busy.status_code, busy.json()["code"]) == (409, "idempotency_key_in_use")
    assert busy.headers["x-should-retry"] == "true"
    assert busy.headers["retry-after"] == "1"
    assert busy.headers["pilotlight-call-id"] == first.result().json()["id"]
    assert waiting.result().headers["idempotent-replayed"] == "true"
    assert waiting.result().content == first.result().content


async def test_a_keyed_call_goes_on_when_its_caller_hangs_up(worlds: tuple[World, World]) -> None:
    """The caller comes again for its answer. Meanwhile it counts as inside, so that a shutdown waits for it."""
    one, two = worlds
    one.calls.hold = asyncio.Event()
    wire = Wire(pieces=(msgspec.json.encode(BODY),))
    headers = {"authorization": f"Bearer {one.key}", "idempotency_key": "k"}
    async with two.client() as there, asyncio.TaskGroup() as tasks:
        tasks.create_task(ask(one.app, wire, "POST", PATH, **headers))
        await until(lambda: bool(one.calls.seen))
        wire.gone.set()
        busy = await there.post(PATH, json=BODY, headers=keyed())
        assert len(one.services.gate) == 1
        one.calls.hold.set()
        answer = await there.post(PATH, json=BODY, headers=keyed(prefer="wait=30"))

    assert (busy.status_code, answer.status_code) == (409, 200)
    assert answer.headers["idempotent-replayed"] == "true"
    assert one.calls.cancelled == []
    assert one.services.budget.used == 0


async def test_a_stream_has_no_key(worlds: tuple[World, World]) -> None:
    """It could not be repeated, and who sends a key relies on that; nothing runs."""
    one, _ = worlds
    async with one.client() as client:
        refused = await client.post(PATH, json=BODY, headers=keyed(accept="text/event-stream"))

    assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
    assert one.calls.seen == []


async def test_a_generator_called_for_one_answer_may_have_one(worlds: tuple[World, World]) -> None:
    """Its list is repeated as any answer."""
    one, two = worlds
    path = "/v1/functions/shop.tokens/calls"
    async with one.client() as here, two.client() as there:
        first = await here.post(path, json={"input": {}}, headers=keyed())
        second = await there.post(path, json={"input": {}}, headers=keyed())

    assert (first.status_code, second.content) == (200, first.content)
    assert two.calls.seen == []


async def test_a_bad_key_is_refused(worlds: tuple[World, World]) -> None:
    """Before anything runs."""
    one, _ = worlds
    async with one.client() as client:
        refused = await client.post(PATH, json=BODY, headers=keyed("two words"))

    assert (refused.status_code, refused.json()["code"], one.calls.seen) == (400, "bad_request", [])


async def test_two_keys_are_refused(worlds: tuple[World, World]) -> None:
    """Also the same one twice: a proxy that joins them makes another key of it; nothing runs."""
    one, _ = worlds
    async with one.client() as client:
        for second in ("k2", "k"):
            headers = [("authorization", client.headers["authorization"]), *keyed().items(), *keyed(second).items()]
            refused = await client.post(PATH, json=BODY, headers=headers)

            assert (refused.status_code, refused.json()["code"]) == (400, "bad_request")
            assert "2 times" in refused.json()["detail"]
    assert one.calls.seen == []


@pytest.mark.parametrize("size", [PIECE_BYTES, KEPT_BYTES - 1024, KEPT_BYTES])
async def test_large_answers(worlds: tuple[World, World], size: int) -> None:
    """They are repeated as far as they are kept; beyond it the second caller hears that the call has run."""
    one, two = worlds
    (one.calls.output,) = packed("x" * size)
    async with one.client() as here, two.client() as there:
        first = await here.post(PATH, json=BODY, headers=keyed())
        second = await there.post(PATH, json=BODY, headers=keyed())

    assert len(first.json()["output"]) == size
    if size < KEPT_BYTES:
        assert second.content == first.content
        assert second.headers["idempotent-replayed"] == "true"
    else:
        assert (second.status_code, second.json()["code"]) == (410, "answer_not_kept")
    assert two.calls.seen == []
    assert (one.services.budget.used, two.services.budget.used) == (0, 0)


async def test_calls_without_a_key_ask_nobody(worlds: tuple[World, World]) -> None:
    """They pay nothing."""
    one, _ = worlds
    async with one.client() as client:
        answer = await client.post(PATH, json=BODY)

    assert answer.status_code == 200
    assert one.services.idempotency.statistics().first == 0


@asynccontextmanager
async def on_the_bus(url: str, world: World, name: str) -> AsyncIterator[World]:
    """A gateway whose keys are on the bus."""
    owner = CallOwner(name=name, instance=f"{name}-1")
    async with connect(url, name=name) as bus, bus.lease(f"gateway.{name}", name, data=owner.instance.encode()):
        world.services.idempotency = Idempotency(BusKeyRecords(bus), owner=owner)
        yield world


async def test_two_gateways_on_one_bus(server_url: str, worlds: tuple[World, World]) -> None:
    """What one answered, the other repeats; what one took with it into death, the other tells as lost."""
    key, names = token(), (f"one-{token()}", f"two-{token()}")
    async with on_the_bus(server_url, worlds[1], names[1]) as two, two.client() as there:
        async with on_the_bus(server_url, worlds[0], names[0]) as one, one.client() as here:
            first = await here.post(PATH, json=BODY, headers=keyed(key))
            second = await there.post(PATH, json=BODY, headers=keyed(key))
            one.calls.hold = asyncio.Event()
            dying = asyncio.create_task(here.post(PATH, json=BODY, headers=keyed(f"{key}-lost")))
            often = asyncio.create_task(
                here.post("/v1/functions/shop.often/calls", json=BODY, headers=keyed(f"{key}-often"))
            )
            await until(lambda: len(one.calls.seen) == 3)
            one.services.gate.draining = True
            await one.services.gate.abort(5.0)
            ended = [(await task).json()["code"] for task in (dying, often)]
        lost = await there.post(PATH, json=BODY, headers=keyed(f"{key}-lost"))
        again = await there.post("/v1/functions/shop.often/calls", json=BODY, headers=keyed(f"{key}-often"))

    assert second.content == first.content
    assert ended == ["draining", "draining"]
    assert (lost.status_code, lost.json()["code"]) == (410, "call_lost")
    assert (again.status_code, "idempotent-replayed" in again.headers) == (200, False)
    assert [call.version.function for call in two.calls.seen] == ["often"]
