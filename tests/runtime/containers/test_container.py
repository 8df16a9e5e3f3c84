"""One container with a real guest: streams, batches, cancelling, and every way in which it can end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.messages.call_messages import Cancel, Outcome, Refusal, Window
from pilotlight_core.model.messages.logs import LogLine
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.spec import SLO
from pilotlight_core.model.units import NS_PER_S
from tests.builders.specs import method
from tests.runtime.harness import WITHIN, Harness, agent, batched, everybody, generator, harness

COUNT = """
def f(n, pause=0.0):
    import time
    try:
        for i in range(n):
            yield i
            time.sleep(pause)
    finally:
        print("closed")
"""
SQUARES = """
def f(n):
    return [{"square": x * x, "together": len(n)} if x >= 0 else ValueError("negative") for x in n]
"""
SLOW = """
def f(seconds):
    import time
    time.sleep(seconds)
    return seconds
"""


async def test_a_stream_arrives_in_order(world: Harness) -> None:
    """Each value is a chunk with a rising number, and the last frame says how many there were."""
    container = await world.bind(await world.deploy(COUNT, methods=generator()))

    call = world.run(container, n=5)
    ended = await call.ended()

    assert call.chunks == [0, 1, 2, 3, 4]
    assert ended.outcome is Outcome.OK
    assert ended.last_seq == 5


async def test_a_stream_stays_within_its_window(world: Harness) -> None:
    """Nothing is sent beyond the window until the origin has passed on what came before."""
    container = await world.bind(await world.deploy(COUNT, methods=generator()))

    call = world.run(container, {"window": 4}, n=10)
    await call.wait(5)  # Started and four chunks
    await asyncio.sleep(0.05)  # what must not come rings no bell
    assert call.chunks == [0, 1, 2, 3]
    world.control(Window(call_id=call.id, upto=4))
    await call.wait(9)
    world.control(Window(call_id=call.id, upto=8))

    assert (await call.ended()).last_seq == 10


async def test_a_cancelled_stream_closes_the_generator(world: Harness) -> None:
    """The generator is closed at its next yield, so its finally runs."""
    container = await world.bind(await world.deploy(COUNT, methods=generator()))
    call = world.run(container, n=1_000, pause=0.01)
    await call.wait(3)

    world.control(Cancel(call_id=call.id))

    ended = await call.ended()
    assert ended.outcome is Outcome.CANCELLED
    assert ended.started
    assert (await world.run(container, n=1).ended()).outcome is Outcome.OK
    assert await world.logs(lambda lines: any(line.text == "closed" for line in lines))


async def test_calls_are_batched(world: Harness) -> None:
    """Calls that come together go together, and each gets its own answer or error."""
    container = await world.bind(await world.deploy(SQUARES, methods=batched(8)))

    calls = [world.run(container, n=n) for n in (1, 2, -3, 4)]
    ended = [await call.ended() for call in calls]

    assert await calls[1].output() == {"square": 4, "together": 4}
    assert [frame.outcome for frame in ended] == [Outcome.OK, Outcome.OK, Outcome.RAISED, Outcome.OK]
    assert ended[2].error is not None
    assert ended[2].error.message == "negative"
    assert {frame.spent.batch_size for frame in ended if frame.spent} == {4}


async def test_a_batch_that_raises_is_tried_item_by_item_if_that_is_safe(world: Harness) -> None:
    """With idempotent=True each item runs alone once; without, all of them fail."""
    source = "def f(n):\n    if 0 in n:\n        raise ValueError('zero')\n    return n\n"
    safe = await world.bind(await world.deploy(source, methods=batched(8), idempotent=True), "cpu-0")
    unsafe = await world.bind(await world.deploy(source, methods=batched(8)), "cpu-1")

    calls = [world.run(safe, n=n) for n in (1, 0, 3)]
    others = [world.run(unsafe, n=n) for n in (1, 0, 3)]

    assert [(await call.ended()).outcome for call in calls] == [Outcome.OK, Outcome.RAISED, Outcome.OK]
    assert [(await call.ended()).outcome for call in others] == [Outcome.RAISED] * 3


async def test_cancelling_removes_one_item_from_a_batch(world: Harness) -> None:
    """A call that waits in a batch is removed before it starts; its neighbours do not notice."""
    container = await world.bind(await world.deploy(SQUARES, methods=batched(8, wait_ms=200.0)))
    calls = [world.run(container, n=n) for n in (1, 2, 3)]

    world.control(Cancel(call_id=calls[1].id))

    gone = await calls[1].ended()
    assert (gone.outcome, gone.started) == (Outcome.CANCELLED, False)
    assert await calls[0].output() == {"square": 1, "together": 2}


async def test_a_call_past_its_timeout_takes_the_container_with_it(world: Harness) -> None:
    """The one that ran too long timed out, its neighbour's container died, the slice is free again."""
    version = await world.deploy(SLOW, timeout=0.4, max_inputs=2)
    container = await world.bind(version)

    slow = world.run(container, seconds=30)
    await slow.wait(1)
    await asyncio.sleep(0.2)  # the second call must be younger than the first
    young = world.run(container, seconds=30)

    assert (await slow.ended()).outcome is Outcome.TIMEOUT
    died = await young.ended()
    assert died.outcome is Outcome.DIED
    assert "ran past its timeout of 0.4 s" in died.reason
    await world.credit(container, ContainerState.GONE)
    await world.report(lambda report: not report.containers and not any(s.container for s in report.slices))
    assert await world.run(await world.bind(version), seconds=0).output() == 0


async def test_a_guest_that_ends_itself_is_told_at_once(world: Harness) -> None:
    """os._exit during a call: the call it held has died, with the exit code; the next container works."""
    version = await world.deploy("import os\ndef f(code):\n    os._exit(code)\n")
    container = await world.bind(version)

    ended = await world.run(container, code=3).ended()

    assert (ended.outcome, ended.started, ended.reason) == (Outcome.DIED, True, "exit code 3")
    assert (await world.credit(container, ContainerState.GONE)).reason == "exit code 3"
    lines = await world.logs(lambda lines: any(line.stream == "platform" for line in lines))
    assert lines[-1].text == "the container has ended: exit code 3"


async def test_draining_ends_what_is_held_and_runs_the_exit_hooks(world: Harness) -> None:
    """A draining container takes nothing new, finishes, says goodbye, and is gone."""
    source = """
    import time
    class f:
        def call(self, seconds):
            time.sleep(seconds)
            return "done"
        def leave(self):
            print("left in order")
    """
    version = await world.deploy(source, is_class=True, methods=(method("call", "call"),), exit=("leave",))
    container = await world.bind(version)
    call = world.run(container, {"method": "call"}, seconds=0.3)
    await call.wait(1)

    assert (await world.drain(container)).ok
    refused = world.run(container, {"method": "call"}, seconds=0)

    assert (await refused.refused()).reason in (Refusal.DRAINING, Refusal.NO_SLOT)
    assert await call.output() == "done"
    await world.credit(container, ContainerState.GONE)
    assert await world.logs(lambda lines: any(line.text == "left in order" for line in lines))


async def test_draining_has_a_bound(world: Harness) -> None:
    """What has not ended in time dies with the container."""
    container = await world.bind(await world.deploy(SLOW))
    call = world.run(container, seconds=30)
    await call.wait(1)

    assert (await world.drain(container, within_ms=100)).ok

    ended = await call.ended()
    assert ended.outcome is Outcome.DIED
    assert "drained" in ended.reason


@pytest.mark.parametrize(("source", "fault"), [("SLOW", Fault.PLATFORM), ("DIES", Fault.TENANT)])
async def test_usage_says_whose_fault_a_death_is(world: Harness, source: str, fault: Fault) -> None:
    """That of whoever ended the container: its own code, or the platform with a drain."""
    dies = "import os\ndef f(seconds):\n    os._exit(3)\n"
    container = await world.bind(await world.deploy(SLOW if source == "SLOW" else dies))
    call = world.run(container, {"key": "key_1", "tags": {"team": "red"}}, seconds=30)
    await call.wait(1)
    if source == "SLOW":
        assert (await world.drain(container, within_ms=100)).ok
    assert (await call.ended()).outcome is Outcome.DIED

    events = await world.usage(lambda events: any(share.ended for event in events for share in event.shares))

    (last,) = [share for event in events for share in event.shares if share.ended]
    assert (last.ended, last.fault, last.key, last.tags) == ("died", fault, "key_1", {"team": "red"})
    (busy,) = [event for event in events if last in event.shares]
    assert busy.used
    assert (busy.region, busy.zone, busy.purchase) == ("local", "local-a", "on-demand")
    assert abs(busy.wall_ns / 1e9 - busy.ended_at) < 1e-3


async def test_usage_says_what_a_start_was(world: Harness) -> None:
    """Files and a sandbox are made ready, then code is loaded, all without a gap."""
    version = await world.deploy("import time\ntime.sleep(0.05)\ndef f(): ...", tags={"team": "search"})
    await world.bind(version)
    ready = {(LeaseState.PROVISIONING, False), (LeaseState.IDLE, True)}
    events = await world.usage(lambda events: ready <= {(event.state, bool(event.tenant)) for event in events})

    begun = [event for event in events if event.tenant]
    states = list(dict.fromkeys(event.state for event in begun))
    assert states == [LeaseState.PROVISIONING, LeaseState.LOADING, LeaseState.IDLE]
    assert {event.tags["team"] for event in begun} == {"search"}
    assert all(before.t1 == after.t0 for before, after in pairwise(begun))
    loaded = sum(event.t1 - event.t0 for event in begun if event.state is LeaseState.LOADING)
    assert loaded >= 0.05 * NS_PER_S
    bound = [each for each in events if each.state is LeaseState.PROVISIONING and not each.tenant]
    assert (bound[-1].slice, bound[-1].t1) == (begun[0].slice, begun[0].t0)


async def test_a_later_drain_may_be_shorter(world: Harness) -> None:
    """An app that is stopped while its containers drain for another reason has the shorter time; never a longer one."""
    container = await world.bind(await world.deploy(SLOW, timeout=1_000.0))
    call = world.run(container, seconds=1_000)
    await call.wait(1)

    assert (await world.drain(container, within_ms=1_000_000)).ok
    assert (await world.drain(container, within_ms=100)).ok
    assert (await world.drain(container, within_ms=1_000_000)).ok

    assert (await call.ended()).outcome is Outcome.DIED
    await world.credit(container, ContainerState.GONE)


async def test_a_call_that_nobody_wants_any_more_has_a_grace(server_url: str, tmp_path: Path) -> None:
    """Then its container is killed, the call was cancelled and metered, and the slice is free again."""
    async with everybody(server_url, tmp_path) as world, agent(world, stop_grace_s=0.2):
        version = await world.deploy(SLOW.replace("import time", "import time; print('begun')"), timeout=86_400.0)
        container = await world.bind(version)
        call = world.run(container, seconds=1_000)
        # A call that the guest has not begun yet is cancelled at once, and nothing needs to be killed.
        assert await world.logs(lambda lines: any(line.text == "begun" for line in lines))

        world.control(Cancel(call_id=call.id, reason="the caller left"))

        ended = await call.ended()
        assert (ended.outcome, ended.reason) == (Outcome.CANCELLED, "the caller left")
        assert ended.spent is not None
        gone = await world.credit(container, ContainerState.GONE)
        assert "0.2 s after it was given up" in gone.reason
        assert await world.run(await world.bind(version), seconds=0).output() == 0


async def test_a_call_that_cannot_start_in_time_is_refused(world: Harness) -> None:
    """It waits in its batch no longer than its origin allows."""
    container = await world.bind(
        await world.deploy(SLOW.replace("sleep(seconds", "sleep(seconds[0]"), methods=batched(1))
    )
    busy = world.run(container, seconds=0.5)
    await busy.wait(1)

    late = world.run(container, {"start_within_ms": 100.0}, seconds=0)

    assert (await late.refused()).reason is Refusal.EXPIRED


async def test_printing_without_end_blocks_nobody(world: Harness) -> None:
    """100 MB of output pass in seconds, are capped, and what was dropped is counted."""
    source = """
    import sys
    def f(megabytes):
        line = "x" * 99 + "\\n"
        for _ in range(megabytes):
            sys.stdout.write(line * 10_000)
        return "done"
    """
    container = await world.bind(await world.deploy(source))

    assert await world.run(container, megabytes=100).output() == "done"

    def dropped(lines: Sequence[LogLine]) -> int:
        return sum(int(line.text.split()[0]) for line in lines if line.stream == "platform")

    def printed(lines: Sequence[LogLine]) -> int:
        return sum(line.stream == "stdout" for line in lines)

    # What was dropped last is told with the next line that passes, and there is none.
    lines = await world.logs(lambda lines: dropped(lines) + printed(lines) > 500_000)
    assert printed(lines) < dropped(lines) / 10


async def test_a_function_sees_its_own_files_only(server_url: str, tmp_path: Path) -> None:
    """Bound from a blank: its bundle, read-only, and nothing of the platform's state."""
    source = """
    import os
    def f(state):
        try:
            open("/app/new", "w")
            writable = True
        except OSError:
            writable = False
        files = sorted(os.path.join(root, name) for root, _, names in os.walk("/app") for name in names)
        return [files, writable, os.path.exists(state), sorted(os.environ)]
    """
    async with harness(server_url, tmp_path, sandbox="bubblewrap", blanks=1) as world:
        await world.report(lambda report: report.blanks.get("default") == 1)
        version = await world.deploy(source, files={"data/words.txt": "hello\n"}, env={"MINE": "1"})
        container = await world.bind(version)

        files, writable, sees_state, env = await world.run(container, state=str(tmp_path)).output()

        assert files == ["/app/app.py", "/app/data/words.txt"]
        assert not writable
        assert not sees_state
        assert "MINE" in env
        assert [name for name in env if name.startswith(("PILOTLIGHT", "PL_FD"))] == ["PILOTLIGHT_MODELS"]


FRAMES = """
import os, stat, time
from pilotlight_runtime.guest import frames
def send(*all):
    data = b"".join(map(frames.encode, all))
    while data:
        data = data[os.write(fd(), data):]
def fd():
    return next(n for n in map(int, os.listdir("/proc/self/fd")) if is_socket(n))
def is_socket(fd):
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False
"""


@pytest.mark.parametrize(
    "frame",
    [
        'frames.LoadError(step="x" * 5_000_000, error=frames.RemoteError("E", "m"))',
        'frames.LoadError(step="import", error=frames.RemoteError("E" * 5_000_000, "m" * 5_000_000))',
        '*(frames.LoadStep(name=f"{n}", ms=1.0) for n in range(100_000))',
        '*(frames.LoadStep(name="import", ms=float("nan")) for n in range(3))',
    ],
)
async def test_a_guest_that_writes_its_own_frames_while_it_loads_harms_only_itself(world: Harness, frame: str) -> None:
    """What it says is bounded before anybody is told of it: the agent once ended with a message too large."""
    bad = await world.deploy(f"{FRAMES}send({frame})\ntime.sleep(30)\ndef f(): pass\n")

    container = await world.bind(bad, state=ContainerState.GONE)
    gone = await world.credit(container, ContainerState.GONE)

    assert sum(map(len, (gone.reason, *gone.timeline))) < 1_000
    assert len(gone.error.message if gone.error else "") < 10_000
    assert (await world.run(await world.bind(await world.deploy(SLOW)), seconds=0).ended()).outcome is Outcome.OK


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ("os.write(fd(), frames.HEADER.pack(60_000_000))", "the guest's connection broke: a frame of 60000000 bytes"),
        ('send(frames.ChunkOut(call_id="x", seq=1, data=b""))', "the guest streamed for a call that does not stream"),
    ],
)
async def test_a_guest_that_breaks_the_rules_is_killed_with_the_reason(world: Harness, sent: str, reason: str) -> None:
    """Its caller reads why, and not only that it was killed."""
    bad = await world.deploy(f"{FRAMES}def f():\n    {sent}\n    time.sleep(30)\n")

    ended = await world.run(await world.bind(bad)).ended()

    assert ended.outcome is Outcome.DIED
    assert ended.reason.startswith(reason)


async def test_a_stream_that_floods_us_after_it_was_cancelled_is_killed(world: Harness) -> None:
    """The window binds it for as long as it runs."""
    source = f"""{FRAMES}
def f():
    try:
        while True:
            yield 0
    finally:
        for seq in range(3, 10**9):
            send(frames.ChunkOut(call_id="call_flood", seq=seq, data=b""))
"""
    container = await world.bind(await world.deploy(source, methods=generator()))
    call = world.run(container, {"call_id": "call_flood", "window": 2})
    await call.wait(3)

    world.control(Cancel(call_id=call.id))
    gone = await world.credit(container, ContainerState.GONE)

    assert "the guest streamed" in gone.reason


FULL = """
async def f(waiting):
    import asyncio
    from pilotlight_core.model.messages.engine_report import EngineReport, report_engine
    report_engine(EngineReport(waiting=waiting))
    await asyncio.Event().wait()
"""


async def test_a_container_offers_nothing_while_calls_wait_within(world: Harness) -> None:
    """Its function says so; they wait at their home then. That there is room again is told at once."""
    container = await world.bind(await world.deploy(FULL, methods=(method(is_async=True),), max_inputs=4))

    async def offers(slots: int, held: int) -> None:
        async with asyncio.timeout(WITHIN):
            while (credit := world.credits[container][-1]).slots != slots or len(credit.held) != held:
                await world.news()

    await offers(4, 0)
    full = world.run(container, waiting=3)
    await offers(1, 1)
    roomy = world.run(container, waiting=0)
    await offers(4, 2)
    for call in (full, roomy):
        world.control(Cancel(call_id=call.id))
        await call.ended()
    await offers(4, 0)
    report = await world.report(lambda found: bool(found.containers))
    assert report.containers[0].slots == 4


PACED = """
async def f(took_ms):
    from pilotlight_core.model.messages.engine_report import EngineReport, report_engine
    report_engine(EngineReport(inter_token_ms=took_ms))
"""


async def test_a_container_whose_tokens_come_slowly_takes_no_further_calls(world: Harness) -> None:
    """Until they come as `slo=` says; it always takes one, and what it may hold stays what it was."""
    engine = EngineSpec(kind=EngineKind.SIM)
    deployed = await world.deploy(
        PACED, methods=(method(is_async=True),), max_inputs=2, engine=engine, slo=SLO(itl_ms=50.0)
    )
    container = await world.bind(deployed)
    assert (await world.credit(container, ContainerState.READY)).slots == 2

    for took_ms, offered in ((80.0, 1), (20.0, 2)):
        assert (await world.run(container, took_ms=took_ms).ended()).outcome is Outcome.OK
        async with asyncio.timeout(WITHIN):
            while (credit := world.credits[container][-1]).slots != offered or credit.held:
                await world.news()
    report = await world.report(lambda found: bool(found.containers))
    assert report.containers[0].slots == 2
