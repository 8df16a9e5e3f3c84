"""Calls that a waiter waits for, without a task."""

# ruff: noqa: F811 - fixtures of a module are parameters of the same names

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilotlight_core.model import values
from pilotlight_core.model.errors import Conflict, FunctionRaised
from pilotlight_core.model.messages.call_messages import Ended, Outcome, RemoteError, Spent
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_service import CallService
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.limits.call_usage import CallUsage
from tests.gateway.calls.test_call_service import (  # noqa: F401 - fixtures, by their names
    agent,
    bodies,
    bus,
    calls,
    node,
    prepared,
)
from tests.gateway.scripted_agent import ScriptedAgent
from tests.waiting import until


class Waiter:
    """What it is told, and what was counted of the call then."""

    def __init__(self, usage: CallUsage | None = None) -> None:
        self.told: list[Any] = []
        self.counted = 0
        self._usage = usage

    def finished(self, result: CallResult) -> None:
        self._note(result)

    def failed(self, error: Exception) -> None:
        self._note(error)

    def _note(self, told: object) -> None:
        self.told.append(told)
        self.counted = self._usage.known if self._usage is not None else 0


async def test_a_waiter_is_told_without_a_task(calls: CallService, agent: ScriptedAgent) -> None:
    """The result, and the status stays after the call was ended."""
    agent.credit()
    waiter, call, tasks = Waiter(), prepared(calls, agent), len(asyncio.all_tasks())
    begun = calls.begin(call, waiter)
    assert len(asyncio.all_tasks()) == tasks
    await until(lambda: waiter.told)
    begun.end()
    assert values.decode(waiter.told[0].output) == {"x": 1}
    assert (await calls.status("acme", call.call_id)).state == "succeeded"
    assert len(calls._origins) == 0


async def test_a_waiter_who_ends_its_call_hears_nothing_more(calls: CallService, agent: ScriptedAgent) -> None:
    """The call is cancelled at its agent."""
    agent.script = lambda _: []
    agent.credit()
    waiter, call = Waiter(), prepared(calls, agent)
    begun = calls.begin(call, waiter)
    await agent.until(lambda: agent.runs)
    begun.end()
    await agent.until(lambda: agent.cancels)
    assert waiter.told == []
    assert (await calls.status("acme", call.call_id)).state == "cancelled"


async def test_a_waiter_is_told_of_a_failure_when_its_cost_is_counted(calls: CallService, agent: ScriptedAgent) -> None:
    """It settles the usage at once."""
    agent.script = lambda run: [
        Ended(
            call_id=run.call_id, grant_number=run.grant_number, container=run.container, outcome=Outcome.RAISED,
            error=RemoteError(type="ValueError", message="no", traceback=""),
            spent=Spent(ns=1_000_000, ppm=1_000_000, price="cpu"),
        )
    ]  # fmt: skip
    agent.credit()
    usage = CallUsage()
    waiter = Waiter(usage)
    begun = calls.begin(prepared(calls, agent, usage=usage), waiter)
    await until(lambda: waiter.told)
    begun.end()
    assert isinstance(waiter.told[0], FunctionRaised)
    assert waiter.counted == 1


async def test_a_call_that_cannot_begin_keeps_no_place(
    calls: CallService, agent: ScriptedAgent, bodies: LargeBodies
) -> None:
    """Its client's id stands for another call: neither it nor a place for its answer stays."""
    agent.script = lambda _: []
    first = calls.begin(prepared(calls, agent, client_id="cid_12345678"), Waiter())
    with pytest.raises(Conflict):
        calls.begin(prepared(calls, agent, client_id="cid_12345678"), Waiter())
    assert len(calls._origins) == 1
    first.end()
    assert len(calls._origins) == 0
    assert bodies._expected == {}
