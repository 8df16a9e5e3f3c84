"""What agents ask is answered once it is carried out, once, and for those alone who may ask."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pilotlight_core.model import subjects
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.messages.agent_questions import MOST_AT_ONCE, LeaveNested
from pilotlight_core.model.tenancy import LimitsRecord
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES
from pilotlight_gateway.nested import nested_exchange
from tests.builders.nodes import container, node_report
from tests.builders.specs import function_spec, version_record
from tests.gateway.nested.nested_world import SUBJECT, NestedWorld, asked, live_call, output_of
from tests.gateway.world import World, function
from tests.waiting import until

OTHER = subjects.nested("local", "gw1", "n2")


@pytest.fixture
async def nested(world: World, anyio_backend: str) -> AsyncIterator[NestedWorld]:
    """An exchange that runs, with one parent."""
    world.deploy(function())
    nested = NestedWorld(world)
    nested.enter(live_call(key=world.key.id))
    async with nested.running():
        yield nested


async def answered(nested: NestedWorld, count: int = 1) -> None:
    """Wait for so many answers in all."""
    await until(lambda: len(nested.bus.sent) >= count)


async def test_what_is_asked_is_answered_where_it_was_asked(nested: NestedWorld) -> None:
    """In the inbox of the node, with the body of an HTTP answer."""
    nested.receive(asked())
    await answered(nested)

    ((reply, answer),) = nested.bus.sent
    assert reply.startswith("_AGENT.n1.")
    assert output_of(answer) == {"name": "Ada"}
    assert nested.book.tree("a").total == 1


async def test_what_is_asked_again_is_carried_out_once(nested: NestedWorld) -> None:
    """While it runs, the answer goes to the later question; afterwards it is sent again."""
    nested.world.calls.hold = asyncio.Event()
    nested.receive(asked())
    nested.receive(asked(request=b"", again=True), reply="_AGENT.n1.later")
    nested.world.calls.hold.set()
    await answered(nested)
    nested.receive(asked(request=b"", again=True), reply="_AGENT.n1.last")

    assert [reply for reply, _ in nested.bus.sent] == ["_AGENT.n1.later", "_AGENT.n1.last"]
    assert len(nested.world.calls.seen) == 1


async def test_what_never_came_is_wanted_whole(nested: NestedWorld) -> None:
    """A repetition has no request."""
    nested.receive(asked(request=b"", again=True))

    assert [answer.is_unknown for answer in nested.answers()] == [True]
    assert len(nested.book) == 0


async def test_nobody_speaks_for_calls_of_others(nested: NestedWorld) -> None:
    """Another node, a forged parent, a forged container or grant; and none that would have the answer elsewhere."""
    nested.receive(asked(), subject=OTHER, reply="_AGENT.n2.x")
    nested.receive(asked(parent="b"))
    nested.receive(asked(container="c2"))
    nested.receive(asked(grant_number=7))
    assert nested.codes() == ["unknown_call"] * 4
    nested.receive(asked(), reply="_AGENT.n2.x")
    nested.receive(asked(), reply="_GW.x")

    assert len(nested.bus.sent) == 4
    assert nested.world.calls.seen == []


async def test_an_answer_is_its_nodes_alone(nested: NestedWorld) -> None:
    """Another node that guesses its name gets nothing, and ends nothing."""
    nested.receive(asked())
    await answered(nested)
    nested.receive(asked(again=True), subject=OTHER, reply="_AGENT.n2.x")
    nested.receive(LeaveNested(parent="a", grant_number=1, number=1), subject=OTHER, reply="")
    nested.receive(asked(again=True))

    assert len(nested.bus.sent) == 2


async def test_beyond_a_bound_it_is_refused_by_name(nested: NestedWorld) -> None:
    """Those within go on."""
    nested.world.calls.hold = asyncio.Event()
    for number in range(1, MOST_AT_ONCE + 2):
        nested.receive(asked(number))
    assert nested.codes() == ["nested_refused"]
    nested.world.calls.hold.set()
    await answered(nested, MOST_AT_ONCE + 1)

    assert nested.codes().count("") == MOST_AT_ONCE


async def test_a_parent_that_ended_takes_its_nested_calls_along(nested: NestedWorld) -> None:
    """Whether it is gone, or runs elsewhere now."""
    nested.world.calls.hold = asyncio.Event()
    nested.receive(asked(1))
    await until(lambda: len(nested.world.calls.seen) == 1)
    again = nested.enter(live_call(number=2, key=nested.world.key.id))
    await answered(nested)
    nested.receive(asked(1, grant_number=2))
    await until(lambda: len(nested.world.calls.seen) == 2)
    del nested.live[again.call.call_id]
    await answered(nested, 2)

    assert nested.codes() == ["cancelled", "cancelled"]
    assert len(nested.world.calls.cancelled) == 2
    await until(lambda: nested.book.is_empty)
    tallies = nested.world.services.recorder.tallies
    tallies.fold()
    assert [(each.counts.arrivals, each.counts.inside, each.counts.gone) for each in tallies.each()] == [(2, 0, 2)]


async def test_a_nested_call_that_is_left_is_cancelled(nested: NestedWorld) -> None:
    """Also before its first step."""
    nested.world.calls.hold = asyncio.Event()
    nested.receive(asked(1))
    nested.receive(LeaveNested(parent="a", grant_number=1, number=1), reply="")
    nested.receive(asked(2))
    await until(lambda: len(nested.world.calls.seen) == 1)
    nested.receive(LeaveNested(parent="a", grant_number=1, number=2), reply="")
    await answered(nested, 2)

    assert nested.codes() == ["cancelled", "cancelled"]


async def test_large_bodies_go_past_the_bus(nested: NestedWorld) -> None:
    """The request is left at a place, the answer is read once; then nothing is held."""
    ask = asked(input={"name": "x" * INLINE_BYTES})
    announced = asked(request=b"", request_size=len(ask.request))
    nested.receive(announced)
    place = nested.answers()[0].place
    assert place is not None
    await put(nested, place.token, ask.request)
    nested.receive(announced)
    await answered(nested, 2)

    large = nested.answers()[1].large
    assert large is not None
    assert large.size > INLINE_BYTES
    assert nested.world.services.budget.used == large.size
    nested.receive(LeaveNested(parent="a", grant_number=1, number=1), reply="")
    assert nested.world.services.budget.used == 0


async def test_a_place_is_told_again(nested: NestedWorld) -> None:
    """The first word of it may be lost; a request that never comes ends with its parent."""
    announced = asked(request=b"", request_size=INLINE_BYTES + 1)
    nested.receive(announced)
    nested.receive(announced)
    nested.live.clear()
    await answered(nested, 3)

    first, second, _ = nested.answers()
    assert first.place == second.place is not None
    assert nested.codes() == ["", "", "cancelled"]


async def put(nested: NestedWorld, name: str, data: bytes) -> None:
    """Leave a request at its place, as an agent does over HTTP."""

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": data}

    async def send(message: object) -> None:
        del message

    await nested.bodies({"type": "http", "method": "PUT", "path": f"/answers/{name}"}, receive, send)


async def test_what_breaks_a_bound_counts_as_a_request(nested: NestedWorld) -> None:
    """One that is too many is told so; the next one that breaks none is made."""
    nested.world.registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(api_requests_per_s=0.1))
    for number in (1, 2):
        nested.receive(asked(number, request_size=10**9))
    assert nested.codes() == ["too_large", "rate_limited"]
    nested.receive(asked(3))
    await answered(nested, 3)
    assert nested.codes()[2] == ""


async def test_answers_are_kept_within_bounds(nested: NestedWorld) -> None:
    """For a while, and of so many bytes."""
    nested.receive(asked())
    await answered(nested)
    loop = asyncio.get_running_loop()
    nested.exchange.sweep(loop.time() + nested_exchange.KEEP_S + 1.0)
    nested.receive(asked(again=True))

    assert nested.answers()[-1].is_unknown


async def test_what_is_asked_for_again_is_kept_while_its_caller_runs(nested: NestedWorld) -> None:
    """Its container may have no room for it as yet; what nobody runs for is kept no longer than before."""
    loop = asyncio.get_running_loop()
    nested.receive(asked())
    await answered(nested)
    (kept,) = nested.exchange._kept.values()
    kept.sent_at -= 100.0
    nested.receive(asked(again=True))
    nested.exchange.sweep(loop.time() + nested_exchange.KEEP_S - 1.0)
    nested.receive(asked(again=True))
    assert [answer.is_unknown for answer in nested.answers()] == [False, False, False]

    nested.live.clear()
    nested.receive(asked(again=True))
    nested.exchange.sweep(loop.time() + nested_exchange.KEEP_S + 1.0)
    assert not nested.exchange._kept


async def test_a_mistake_ends_its_own_call_alone(nested: NestedWorld, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever it is."""
    del caplog
    nested.world.calls.error = RuntimeError("a bug")
    nested.receive(asked(1))
    await answered(nested)
    nested.world.calls.error = None
    nested.receive(asked(2))
    await answered(nested, 2)

    assert nested.codes() == ["internal", ""]


async def test_what_would_never_be_served_is_refused(nested: NestedWorld) -> None:
    """The sweep finds it; its caller hears the reason: the only container there is its caller's own."""
    nested.reports = [node_report(containers=(container("c1", running=1),))]
    nested.world.calls.hold = asyncio.Event()
    nested.receive(asked())
    await until(lambda: len(nested.world.calls.seen) == 1)
    call_id = nested.world.calls.seen[0].call_id
    queued = nested.enter(live_call(call_id, granted=False))
    at = asyncio.get_running_loop().time()
    for second in range(17):
        queued.origin.note_shortage("no free slot", at + second)
        nested.exchange.sweep(at + second)
    await answered(nested)

    assert nested.codes() == ["nested_refused"]


def test_the_subject_names_the_node() -> None:
    """Which the bus lets publish there."""
    assert subjects.node_of(SUBJECT) == "n1"


async def test_an_answer_that_is_not_kept_is_not_made_again(nested: NestedWorld) -> None:
    """Over its bytes a tenant's oldest answers become notes, and no other tenant's."""
    nested.world.deploy(function(), tenant="other")
    version = version_record(function_spec("outer"), tenant="other", app="shop")
    nested.enter(live_call("b", tenant="other", key="", version=version))
    nested.receive(asked(1, parent="b"))
    await answered(nested)
    for number in range(1, nested_exchange.KEEP_BYTES // 250_000 + 2):
        nested.receive(asked(number, input={"name": "x" * 250_000}))
        await answered(nested, number + 1)
    made = len(nested.world.calls.seen)
    nested.bus.sent.clear()
    nested.receive(asked(1, request=b"", again=True))
    nested.receive(asked(1, parent="b", request=b"", again=True))
    nested.receive(asked(1))

    assert nested.codes() == ["answer_not_kept", "", "answer_not_kept"]
    assert len(nested.world.calls.seen) == made


async def test_what_was_left_counts_no_more(nested: NestedWorld) -> None:
    """Though it takes a moment to end."""
    nested.world.calls.hold = asyncio.Event()
    for number in range(1, MOST_AT_ONCE + 1):
        nested.receive(asked(number))
    nested.receive(LeaveNested(parent="a", grant_number=1, number=1), reply="")
    nested.receive(asked(MOST_AT_ONCE + 1))

    assert "nested_refused" not in nested.codes()
