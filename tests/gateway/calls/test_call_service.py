"""Live calls over a real bus, with an agent that follows a script."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model import subjects, values
from pilotlight_core.model.errors import (
    Cancelled,
    Conflict,
    ContainerDied,
    DeadlineExceeded,
    FunctionRaised,
    Unavailable,
    UnknownCall,
)
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import (
    Chunk,
    Ended,
    Outcome,
    Reconcile,
    Refusal,
    Refused,
    RemoteError,
    Run,
    Spent,
    Started,
)
from pilotlight_core.model.messages.demand import Demand, Demands
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import ContainerState, Shortage, Shortages
from pilotlight_core.model.spec import Mode, Priority
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallEvent, CallResult, ChunkEvent, StageEvent
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.live_calls import BUNCH_BYTES
from pilotlight_gateway.calls.prepared_call import Go, PreparedCall
from pilotlight_gateway.limits.call_usage import CallUsage
from tests.builders.specs import function_spec, method, version_record
from tests.gateway.call_gateway import CallGateway
from tests.gateway.scripted_agent import ScriptedAgent
from tests.waiting import until


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    async with connect(server_url, name="calls") as bus:
        yield bus


@pytest.fixture
async def node(server_url: str) -> AsyncIterator[Bus]:
    """The bus as the agent's process has it."""
    async with connect(server_url, name="agent") as bus:
        yield bus


@pytest.fixture
def bodies() -> LargeBodies:
    return LargeBodies(url="http://origin", budget=ByteBudget(limit=10**7))


@pytest.fixture
async def calls(bus: Bus, bodies: LargeBodies) -> AsyncIterator[CallService]:
    async with CallGateway(bus, name="gateway", bodies=bodies).running() as calls:
        await until(lambda: not calls.ready())
        yield calls


@pytest.fixture
async def agent(node: Bus) -> ScriptedAgent:
    agent = ScriptedAgent(node, version=f"ver_{token(12)}")
    await agent.listen()
    return agent


def prepared(calls: CallService, agent: ScriptedAgent, *, within_s: float = 60.0, **more: Any) -> PreparedCall:
    mode = more.pop("mode", Mode.UNARY)
    spec_options = {key: more.pop(key) for key in ("idempotent", "retries") if key in more}
    called = method(mode=mode)
    version = version_record(function_spec("f", called, **spec_options), id=agent._version, app="a")
    at = time.monotonic()
    options: dict[str, Any] = {"client_id": None, "input": values.encode({"x": 1}), "stream": False} | more
    return PreparedCall(
        call_id=calls.new_id(), tenant="acme", version=version, method=called, priority=Priority.STANDARD,
        deadline_at=at + within_s, arrived_at=at, **options,
    )  # fmt: skip


async def test_a_call_goes_to_the_container_and_back(calls: CallService, agent: ScriptedAgent) -> None:
    """Output, receipt and stages come back; the stages sum to what passed."""
    agent.credit()
    result = await calls.run(prepared(calls, agent))

    assert values.decode(result.output) == {"x": 1}
    assert result.spent is not None
    assert result.attempts == 1
    assert set(result.stages) == {"gateway", "queue", "start", "transport", "batch_wait", "execute"}


async def test_a_first_call_waits_for_its_container(calls: CallService, agent: ScriptedAgent, node: Bus) -> None:
    """The controller is told at once; the call is held, and goes when the container is ready."""
    edges: asyncio.Queue[Demand] = asyncio.Queue()

    def on_demands(_: str, message: Demands, __: str) -> None:
        for demand in message.items:
            edges.put_nowait(demand)

    await node.subscribe(subjects.demands("local"), on_demands)
    await node.flush()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent)))

    async with asyncio.timeout(30):
        first = await edges.get()
    assert first.edge
    assert first.queued == 1
    agent.credit(ContainerState.LOADING, timeline={"bind": 3.0})
    agent.credit(timeline={"bind": 3.0, "import": 5.0})
    result = await call
    assert result.cold_start == {"bind": 3.0, "import": 5.0}


async def test_a_full_container_is_not_overcommitted(calls: CallService, agent: ScriptedAgent) -> None:
    """With one slot, the second call is sent only when the first has ended."""
    agent.script = lambda run: []
    agent.credit()
    first = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    second = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    await agent.until(lambda: agent.runs)
    (run,) = agent.runs
    agent.say(run, _ok(run))
    await first

    await agent.until(lambda: len(agent.runs) == 2)
    agent.say(agent.runs[1], _ok(agent.runs[1]))
    await second


async def test_a_refused_grant_goes_elsewhere(calls: CallService, agent: ScriptedAgent) -> None:
    """`draining` costs nothing: when the container speaks again, the call is sent anew with a higher number."""

    def refuse_once(run: Run) -> list[Message]:
        if run.grant_number == 1:
            return [
                Refused(
                    call_id=run.call_id, grant_number=run.grant_number, container=run.container, reason=Refusal.DRAINING
                )
            ]
        return [_ok(run)]

    agent.script = refuse_once
    agent.credit()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    await agent.until(lambda: agent.runs)
    agent.credit()

    assert (await call).attempts == 1
    assert [run.grant_number for run in agent.runs] == [1, 2]


async def test_nobody_listening_is_proof_that_it_never_started(
    calls: CallService, agent: ScriptedAgent, node: Bus
) -> None:
    """A credit of a node without an agent: the bus says so, and the call waits for a real one."""
    ghost = ScriptedAgent(node, version=agent._version, node="ghost", container=f"ghost-{token(8)}")
    await ghost.bind()
    ghost.credit()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    await node.flush()
    agent.credit()

    assert (await call).container == agent.container


async def test_a_dead_agents_calls_have_died_unless_they_may_run_twice(
    calls: CallService, agent: ScriptedAgent
) -> None:
    """A new incarnation of the agent: what was sent counts as started."""
    agent.script = lambda run: []
    await agent.bind(slots=2)
    plain = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    twice = asyncio.ensure_future(calls.run(prepared(calls, agent, idempotent=True)))
    await agent.credit_until(lambda: len(agent.runs) == 2)
    agent.instance, agent.script = "i2", lambda run: [_ok(run)]
    agent.report()
    agent.credit()

    with pytest.raises(ContainerDied):
        await plain
    assert (await twice).attempts == 2


async def test_code_that_raises_fails_with_its_traceback(calls: CallService, agent: ScriptedAgent) -> None:
    """Type, message and the remote traceback reach the caller; `retries=` runs it again first."""
    error = RemoteError("ValueError", "no", "Traceback…")
    agent.script = lambda run: [
        Ended(
            call_id=run.call_id,
            grant_number=run.grant_number,
            container=run.container,
            outcome=Outcome.RAISED,
            error=error,
        )
    ]
    agent.credit()

    with pytest.raises(FunctionRaised) as raised:
        await calls.run(prepared(calls, agent, retries=1))

    assert raised.value.detail == "ValueError: no"
    assert raised.value.remote_traceback == "Traceback…"
    assert len(agent.runs) == 2


@pytest.mark.parametrize("alone", [False, True])
async def test_a_deadline_in_the_queue_says_what_it_waited_for(
    calls: CallService, agent: ScriptedAgent, node: Bus, *, alone: bool
) -> None:
    """The controller's reason is in the error, told among others or alone, and the call never runs."""
    call = asyncio.ensure_future(calls.run(prepared(calls, agent, within_s=0.3)))
    await asyncio.sleep(0)
    shortage = Shortage(version=agent._version, epoch=1, reason="it asks for H100, and the fleet has 2 CPU slots")
    other = msgspec.structs.replace(shortage, version="ver_other", reason="none is left")
    if alone:
        node.publish_nowait(subjects.shortage("local", agent._version), shortage)
    else:
        node.publish_nowait(subjects.shortages("local"), Shortages(items=(shortage, other)))

    with pytest.raises(DeadlineExceeded, match="waited"):
        await call
    assert agent.runs == []


async def test_a_cancelled_call_is_cancelled_at_its_agent(calls: CallService, agent: ScriptedAgent) -> None:
    """By the client's own id; afterwards its status says so, and another tenant finds nothing."""
    agent.script = lambda run: [Started(call_id=run.call_id, grant_number=run.grant_number)]
    agent.credit()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent, client_id="cid_12345678")))
    await agent.until(lambda: agent.runs)

    with pytest.raises(UnknownCall):
        await calls.cancel("mallory", "cid_12345678")
    assert await calls.cancel("acme", "cid_12345678")
    with pytest.raises(Cancelled):
        await call
    await agent.until(lambda: agent.cancels)
    assert (await calls.status("acme", "cid_12345678")).state == "cancelled"
    assert not await calls.cancel("acme", "cid_12345678")
    with pytest.raises(Conflict):
        await calls.run(prepared(calls, agent, client_id="cid_12345678"))


async def test_a_caller_who_goes_away_cancels(calls: CallService, agent: ScriptedAgent) -> None:
    """Cancelling the task that waits is what a disconnect does."""
    agent.script = lambda run: []
    agent.credit()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent)))
    await agent.until(lambda: agent.runs)
    call.cancel()

    await agent.until(lambda: agent.cancels)
    assert agent.cancels[0].call_id == agent.runs[0].call_id


async def test_a_call_whose_caller_went_away_is_shown_as_cancelled(calls: CallService, agent: ScriptedAgent) -> None:
    """It did not succeed, and its client's id is remembered with it."""
    prepared_call = prepared(calls, agent, client_id="cid_12345678")
    call = asyncio.ensure_future(calls.run(prepared_call))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])

    status = await calls.status("acme", prepared_call.call_id)
    assert (status.state, status.error) == ("cancelled", {"code": "cancelled", "detail": "The caller went away."})
    assert await calls.status("acme", "cid_12345678") == status


async def test_what_a_cancelled_call_takes_is_told_when_it_has_ended(calls: CallService, agent: ScriptedAgent) -> None:
    """It is asked for if its agent is silent; until then its usage is open."""
    agent.script = lambda run: [Started(call_id=run.call_id, grant_number=run.grant_number)]
    agent.credit()
    usage, settled = CallUsage(), list[CallUsage]()
    call = asyncio.ensure_future(calls.run(prepared(calls, agent, usage=usage)))
    await agent.until(lambda: agent.runs)
    call.cancel()
    await asyncio.wait([call])
    usage.settle(settled.append)
    (run,) = agent.runs
    await agent.until(lambda: any(run.call_id in getattr(told, "grants", ()) for told in agent.windows))
    assert settled == []

    spent = Spent(ns=7_000_000, ppm=1_000_000, price="cpu")
    ended = Ended(
        call_id=run.call_id,
        grant_number=run.grant_number,
        container=run.container,
        outcome=Outcome.CANCELLED,
        spent=spent,
    )
    agent.say(run, ended)

    await until(lambda: settled)
    assert (usage.cost, usage.known, usage.lost) == (7.0, 1, 0)


async def test_a_refused_call_is_no_work_for_the_garbage_collector(calls: CallService, agent: ScriptedAgent) -> None:
    """An error knows the frames that it came through: those that know its call would be a cycle per refusal."""
    agent.credit()
    await calls.run(prepared(calls, agent))
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            with contextlib.suppress(DeadlineExceeded):
                await calls.run(prepared(calls, agent, within_s=-1.0))
        assert gc.collect() < 20
    finally:
        gc.enable()


async def test_a_stream_keeps_its_window(calls: CallService, agent: ScriptedAgent) -> None:
    """Chunks come in order; the container is told how far the caller has read."""
    total = 300

    def stream(run: Run) -> list[Message]:
        chunks = [
            Chunk(call_id=run.call_id, grant_number=run.grant_number, seq=n, data=values.encode(n))
            for n in range(1, total + 1)
        ]
        return [Started(call_id=run.call_id, grant_number=run.grant_number), *chunks]

    agent.script = stream
    agent.credit()
    reading = asyncio.ensure_future(_all(calls.stream(prepared(calls, agent, stream=True, mode=Mode.GENERATOR))))
    await agent.until(lambda: agent.windows)
    agent.say(agent.runs[0], _ok(agent.runs[0], last_seq=total))
    events = await reading

    assert [values.decode(e.data) for e in events if isinstance(e, ChunkEvent)] == list(range(1, total + 1))
    assert isinstance(events[-1], CallResult)
    assert next(e.name for e in events if isinstance(e, StageEvent)) == "queued"
    assert calls._budget.used == 0


async def test_events_that_are_there_come_together(calls: CallService, agent: ScriptedAgent) -> None:
    """As far as their bytes go; their bytes are held until the next ones are asked for."""
    sizes = (10, BUNCH_BYTES, 10, 10)

    def script(run: Run) -> list[Message]:
        chunks = [
            Chunk(call_id=run.call_id, grant_number=run.grant_number, seq=n, data=b"x" * size)
            for n, size in enumerate(sizes, 1)
        ]
        return [*chunks, _ok(run, last_seq=len(sizes))]

    agent.script = script
    agent.credit()
    stream = calls.stream(prepared(calls, agent, stream=True, mode=Mode.GENERATOR))
    assert isinstance((await anext(stream))[0], StageEvent)
    await until(lambda: calls._budget.used == sum(sizes))
    first = await anext(stream)
    assert calls._budget.used == sum(sizes)
    second = await anext(stream)
    assert calls._budget.used == 20

    assert [e.seq for e in first if isinstance(e, ChunkEvent)] == [1, 2]
    assert [e.seq for e in second if isinstance(e, ChunkEvent)] == [3, 4]
    assert isinstance(second[-1], CallResult)
    assert [bunch async for bunch in stream] == []
    assert calls._budget.used == 0


async def test_more_chunks_than_the_gateway_may_hold_end_the_stream(calls: CallService, agent: ScriptedAgent) -> None:
    """A tenant has its share of the gateway's bytes and no more; what was held is given back."""
    calls._budget.limit = 10
    agent.script = lambda run: [
        Chunk(call_id=run.call_id, grant_number=run.grant_number, seq=1, data=values.encode("x" * 20))
    ]
    agent.credit()
    with pytest.raises(Unavailable, match="bytes"):
        await _all(calls.stream(prepared(calls, agent, stream=True, mode=Mode.GENERATOR)))

    assert calls._budget.used == 0


async def test_large_inputs_and_answers_take_the_internal_listener(
    calls: CallService, agent: ScriptedAgent, bodies: LargeBodies
) -> None:
    """The bus carries one-time references; both are closed when the call is over."""
    agent.script = lambda run: []
    agent.credit()
    data = values.encode({"x": b"y" * 1_000_000})
    call = asyncio.ensure_future(calls.run(prepared(calls, agent, input=data)))
    await agent.until(lambda: agent.runs)
    run = agent.runs[0]
    assert run.body is not None
    assert run.answer is not None
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=bodies)) as http:
        body = (await http.get(run.body.url)).content
        await http.put(run.answer.url, content=body)
        agent.say(run, _ok(run, answer_size=len(body)))
        result = await call

        assert (result.output, bodies.budget.used) == (data, 0)
        assert (await http.put(run.answer.url, content=b"late")).status_code == 404


async def test_calls_of_a_former_gateway_are_lost_and_strangers_are_unknown(calls: CallService) -> None:
    """The id tells whose call it was."""
    with pytest.raises(UnknownCall) as lost:
        await calls.status("acme", f"call_local_1_{token(20)}")
    assert lost.value.wire_code == "call_lost"
    with pytest.raises(UnknownCall) as unknown:
        await calls.status("acme", "cid_neverheard")
    assert unknown.value.wire_code == "unknown_call"


async def _all(bunches: AsyncIterator[list[CallEvent]]) -> list[CallEvent]:
    return [event async for bunch in bunches for event in bunch]


def _ok(run: Run, **more: Any) -> Ended:
    return Ended(
        call_id=run.call_id,
        grant_number=run.grant_number,
        container=run.container,
        outcome=Outcome.OK,
        output=values.encode(None),
        **more,
    )


async def test_a_call_before_its_start_hook_ends_is_not_asked_for(calls: CallService, agent: ScriptedAgent) -> None:
    """Its agent has never heard of it: asked, it would see to it that the call can start there no more."""
    gates: list[Go] = []
    agent.credit()
    task = asyncio.create_task(calls.run(prepared(calls, agent, start_hook=lambda _, go: gates.append(go))))

    await agent.until(lambda: any(isinstance(told, Reconcile) and told.calls for told in agent.windows))

    assert [told.grants for told in agent.windows if isinstance(told, Reconcile)] == [{}]
    assert gates.pop()(allowed=True)
    assert values.decode((await task).output) == {"x": 1}
