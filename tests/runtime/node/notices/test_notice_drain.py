"""An agent whose node is taken away: what becomes of its calls, and of itself."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model.messages.call_messages import Outcome, Refusal
from pilotlight_core.model.messages.node_messages import ContainerState, NodeNotice, NoticeKind
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.spec import Mode
from tests.builders.specs import method
from tests.runtime.harness import agent, batched, everybody, generator
from tests.runtime.node.notices.scripted_notices import ScriptedNotices, in_seconds

SLEEP = "import time\ndef f(s):\n    time.sleep(s)\n    return s\n"
COUNT = """
import time
def f(n, s):
    for i in range(n):
        time.sleep(s)
        yield i
"""


async def test_what_fits_ends_well_and_what_has_not_begun_goes_back(server_url: str, tmp_path: Path) -> None:
    """The node says so at once, and its agent has ended before the deadline."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(SLEEP, max_inputs=1))
        running = world.run(container, s=0.5)
        await running.wait(1)
        waiting = world.run(container, s=0.5)

        notices.said = told = in_seconds(20.0)

        assert (await world.report(lambda report: report.draining)).notice == told
        await world.credit(container, ContainerState.DRAINING)
        refusal = await waiting.refused()
        assert refusal.reason in (Refusal.DRAINING, Refusal.NO_SLOT)
        assert (await world.run(container, s=0.0).refused()).reason is Refusal.DRAINING
        assert await running.output() == 0.5
        await world.report(lambda report: report.stopped)
        assert time.time() < told.deadline


async def test_calls_that_wait_for_their_batch_go_back(server_url: str, tmp_path: Path) -> None:
    """They were in the container's hands, and nothing of them had begun."""
    notices = ScriptedNotices()
    source = "def f(n):\n    return n\n"
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(source, methods=batched(8, wait_ms=60_000.0)))
        calls = [world.run(container, n=n) for n in range(3)]
        async with asyncio.timeout(30):
            while world.credits[container][-1].batch_room != 5:
                await world.news()
        notices.said = in_seconds(20.0)
        assert [(await call.refused()).reason for call in calls] == [Refusal.DRAINING] * 3
        await world.report(lambda report: report.stopped)


async def test_a_call_that_does_not_fit_ends_as_preempted(server_url: str, tmp_path: Path) -> None:
    """One that may run again ends at once, at the operator's cost, long before the deadline."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        version = await world.deploy(SLEEP, idempotent=True)
        container = await world.bind(version)
        assert await world.run(container, s=0.0).output() == 0.0
        call = world.run(container, s=300.0)
        await call.wait(1)
        began = asyncio.get_running_loop().time()
        notices.said = told = in_seconds(6.0)
        ended = await call.ended()
        assert (ended.outcome, ended.preempted, ended.started) == (Outcome.DIED, True, True)
        assert ended.spent is not None
        assert ended.spent.fault is Fault.PLATFORM
        assert asyncio.get_running_loop().time() - began < 6.0
        await world.report(lambda report: report.stopped)
        assert time.time() < told.deadline


async def test_a_stream_that_does_not_fit_ends_with_a_receipt_for_its_part(server_url: str, tmp_path: Path) -> None:
    """It goes on as long as there is time; what its caller has of it is paid for."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(COUNT, methods=generator()))
        call = world.run(container, n=10_000, s=0.05)
        await call.wait(3)
        notices.said = told = in_seconds(3.0)
        ended = await call.ended()
        assert (ended.outcome, ended.preempted) == (Outcome.DIED, True)
        assert ended.last_seq == len(call.chunks) > 3
        assert ended.spent is not None
        assert ended.spent.fault is Fault.NONE
        assert ended.spent.ns > 0
        await world.report(lambda report: report.stopped)
        assert time.time() < told.deadline


HOOKED = """
import threading
class F:
    def __init__(self):
        self.taken = threading.Event()
    def work(self, s):
        return self.taken.wait(s)
    {prefix}def save(self):
        print("saved")
        self.taken.set()
    def broken(self):
        raise ValueError("no room")
    def leave(self):
        print("left")
"""


@pytest.mark.parametrize(("max_inputs", "prefix"), [(1, ""), (2, ""), (1, "async ")])
async def test_drain_hooks_run_beside_the_calls(server_url: str, tmp_path: Path, max_inputs: int, prefix: str) -> None:
    """They may have a call end by itself that would not have fitted; one that raises keeps no other from running."""
    notices = ScriptedNotices()
    options: dict[str, Any] = {
        "qualname": "F", "is_class": True, "methods": (method("work", "work"),), "max_inputs": max_inputs,
        "drain": ("broken", "save"), "exit": ("leave",), "idempotent": True,
    }  # fmt: skip
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(HOOKED.format(prefix=prefix), **options))
        call = world.run(container, {"method": "work"}, s=300.0)
        await call.wait(1)
        notices.said = in_seconds(8.0)
        assert await call.output() is True
        lines = await world.logs(lambda lines: any(line.text == "left" for line in lines))
        texts = [line.text for line in lines]
        assert texts.index("saved") < texts.index("left")
        assert any("no room" in text for text in texts)
        await world.report(lambda report: report.stopped)


async def test_a_drain_hook_that_never_ends_is_cut_off(server_url: str, tmp_path: Path) -> None:
    """The node is gone at its deadline, whatever a hook does."""
    notices = ScriptedNotices()
    source = (
        "import time\nclass F:\n    def work(self):\n        return 1\n    def save(self):\n        time.sleep(900)\n"
    )
    options: dict[str, Any] = {
        "qualname": "F", "is_class": True, "methods": (method("work", "work"),), "drain": ("save",)
    }  # fmt: skip
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(source, **options))
        assert await world.run(container, {"method": "work"}).output() == 1
        notices.said = told = in_seconds(4.0)
        await world.report(lambda report: report.stopped)
        assert time.time() < told.deadline


async def test_a_notice_that_is_withdrawn_leaves_the_node_open(server_url: str, tmp_path: Path) -> None:
    """What drained meanwhile ends; binds are taken again, by the same agent."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices, cpu_slots=1):
        version = await world.deploy(SLEEP)
        container = await world.bind(version)
        call = world.run(container, s=1.0)
        await call.wait(1)
        notices.said = in_seconds(60.0)
        await world.report(lambda report: report.draining)
        refused = await world.command(world.bind_of(version))
        assert (refused.ok, refused.reason) == (False, "draining")

        notices.said = None

        report = await world.report(lambda report: not report.draining)
        assert report.notice is None
        assert await call.output() == 1.0
        await world.credit(container, ContainerState.GONE)
        assert await world.run(await world.bind(version), s=0.0).output() == 0.0


async def test_a_notice_that_is_withdrawn_ends_no_call(server_url: str, tmp_path: Path) -> None:
    """One that would not have ended in time goes on behind what was the deadline."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(SLEEP))
        call = world.run(container, s=4.0)
        await call.wait(1)
        notices.said = in_seconds(3.0)
        await world.report(lambda report: report.draining)

        notices.said = None

        await world.report(lambda report: not report.draining)
        assert await call.output() == 4.0


async def test_an_agent_that_is_started_anew_goes_on_with_the_notice(server_url: str, tmp_path: Path) -> None:
    """It takes nothing, and stays: the node was emptied by the agent before. Once the notice is over, it is a node."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world:
        version = await world.deploy(SLEEP)
        async with agent(world, notices=notices):
            notices.said = told = in_seconds(60.0)
            await world.report(lambda report: report.stopped)
        async with agent(world, notices=notices):
            report = await world.report(lambda report: not report.stopped)
            assert (report.draining, report.notice) == (True, told)
            assert (await world.command(world.bind_of(version))).reason == "draining"
            notices.said = None
            await world.report(lambda report: not report.draining)
            assert await world.run(await world.bind(version), s=0.0).output() == 0.0


async def test_a_recommendation_to_rebalance_is_only_told(server_url: str, tmp_path: Path) -> None:
    """Its containers serve until others are there."""
    notices = ScriptedNotices()
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(SLEEP))
        notices.said = told = NodeNotice(kind=NoticeKind.REBALANCE, reason="its zone is short of machines")
        report = await world.report(lambda report: report.notice is not None)
        assert (report.notice, report.draining) == (told, False)
        assert await world.run(container, s=0.0).output() == 0.0


async def test_the_generator_of_a_stream_is_told_to_end(server_url: str, tmp_path: Path) -> None:
    """Its own end runs, and what it counted until then is told."""
    source = """
from pilotlight import count_units
async def f():
    import asyncio
    sent = 0
    while True:
        yield sent
        sent += 1
        count_units(completion_tokens=1)
        await asyncio.sleep(0.02)
"""
    notices = ScriptedNotices()
    methods = (method(mode=Mode.GENERATOR, is_async=True),)
    async with everybody(server_url, tmp_path) as world, agent(world, notices=notices):
        container = await world.bind(await world.deploy(source, methods=methods))
        call = world.run(container)
        await call.wait(4)
        notices.said = in_seconds(2.5)
        ended = await call.ended()
        assert ended.preempted
        assert ended.units is not None
        assert ended.units["completion_tokens"] >= 1
        await world.report(lambda report: report.stopped)
