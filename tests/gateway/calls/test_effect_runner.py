"""What an origin wants is done in its order: bodies that do not fit the bus, chunks, alarms, usage."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.errors import Cancelled, ContainerDied, Unavailable
from pilotlight_core.model.messages.call_messages import Cancel, Chunk, Run
from pilotlight_core.model.messages.scheduling import Withdraw
from pilotlight_core.model.price_book import standard_book
from pilotlight_core.model.spec import Mode
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effect_runner import LOST_ANSWER, EffectRunner
from pilotlight_gateway.calls.effects import (
    FailCall,
    RelayChunks,
    ReportStage,
    SendControl,
    SendRun,
    ignore_failed_start,
)
from pilotlight_gateway.calls.large_bodies import INLINE_BYTES, LargeBodies
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.cluster.agent_links import AgentLinks
from pilotlight_gateway.cluster.router import Outbox, ShardRouter
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.limits.call_usage import CallUsage, UsageTracker
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record
from tests.gateway.calls.quiet_call import QuietCall, quiet_call
from tests.gateway.driver_port import MemoryDriverPort


class Site:
    """A runner over a port in memory."""

    def __init__(self) -> None:
        self.port, self.alarms, self.usage_tracker = MemoryDriverPort(), Timers[str](), UsageTracker()
        ownership = MemoryShardOwnership(gateway="gw1", home=ShardOwner("gw1", 1))
        self.router = ShardRouter(self.port, ownership, Outbox(self.port, "r"), gateway="gw1")
        self.bodies = LargeBodies(url="http://gw1", budget=ByteBudget(limit=10**7))
        self.runner = EffectRunner(
            port=self.port, agents=AgentLinks(self.port, "r"), router=self.router, bodies=self.bodies,
            usage_tracker=self.usage_tracker, alarms=self.alarms, prices=standard_book(),
            start_failed=ignore_failed_start,
        )  # fmt: skip

    def perform(self, live: QuietCall, *effects: Any) -> None:
        self.runner.perform(live, effects, self.port.at)


def send(live: QuietCall) -> SendRun:
    return SendRun("n1", "i1", live.call.run(grant(), 100.0, "gw1"))


def test_what_is_too_large_for_the_bus_is_offered_to_the_agent() -> None:
    """Each run has a place for a large answer; both are closed when the call is sent elsewhere, or over."""
    site, live = Site(), quiet_call(input=b"x" * (INLINE_BYTES + 1))
    site.perform(live, send(live))
    site.perform(live, send(live))
    first, second = site.port.told(Run)
    assert first.body is not None
    assert second.answer is not None
    assert (list(site.bodies._offered), list(site.bodies._expected)) == (
        [live.body.token if live.body else ""],
        [second.answer.token],
    )
    site.runner.close_bodies(live)
    assert (site.bodies._offered, site.bodies._expected) == ({}, {})


def test_an_answer_that_was_not_left_is_lost() -> None:
    """Its agent says that it has left it; between the two it was lost."""
    site, live = Site(), quiet_call()
    site.perform(live, send(live), CallResult(output=b"", answer_size=9))
    assert isinstance(live.error, ContainerDied)
    assert live.error.detail == LOST_ANSWER


def test_a_large_answer_is_part_of_the_result() -> None:
    """The caller gets what was left for it at the listener."""
    site, live = Site(), quiet_call()
    site.perform(live, send(live))
    assert live.place is not None
    site.bodies._expected[live.place.token].data = b"large"
    site.perform(live, CallResult(output=b"", answer_size=5, attempts=2))
    (result,) = live.said
    assert (result.output, result.attempts) == (b"large", 2)


def test_what_happens_reaches_the_caller_in_order() -> None:
    """Stages, chunks, and the end, with what the call took."""
    site, usage = Site(), CallUsage()
    live = quiet_call(usage=usage)
    live.origin.attempts.starts, live.origin.attempts.cost = 1, 7.0
    site.perform(live, ReportStage("running", 3.0), RelayChunks(1, (b"a",)), CallResult(output=b"42"))
    *before, result = live.said
    assert before == ["running", (1, (b"a",))]
    assert isinstance(result, CallResult)
    assert (usage.cost, usage.known, usage.lost) == (7.0, 1, 0)


class Full(QuietCall):
    """A caller for whom no more bytes can be kept."""

    def relay_chunks(self, seq: int, data: tuple[bytes, ...]) -> None:
        raise Unavailable("Too many bytes are held.")


def test_a_chunk_for_which_there_is_no_room_ends_its_call() -> None:
    """Its agent is told, or its home."""
    site, made = Site(), quiet_call()
    live = Full(made.call, made.origin)
    site.perform(live, RelayChunks(1, (b"a",)))
    assert isinstance(live.said[0], Unavailable)
    assert [item for _, item in site.router.home_inbox] == [Withdraw("a")]


def test_a_call_that_failed_may_leave_a_start_behind() -> None:
    """Its usage is open until that is heard of."""
    site, usage = Site(), CallUsage()
    live = quiet_call(usage=usage)
    attempts = live.origin.attempts
    attempts.starts, attempts.lost_starts, attempts.cost = 2, 1, 2.0
    site.perform(live, FailCall(error=Cancelled("x"), left=grant()))
    assert (usage.cost, usage.known, usage.lost, usage.is_open, list(site.usage_tracker.open)) == (
        2.0,
        1,
        1,
        True,
        ["a"],
    )


def test_an_alarm_is_moved_only_to_be_earlier() -> None:
    """One that comes too soon finds nothing to do; that of a call that is over never comes."""
    site, live = Site(), quiet_call(within_s=60.0)
    site.perform(live)
    first = site.alarms.at("a")
    assert first is not None
    assert site.port.woken() == first
    live.origin.begin(first)
    site.perform(live)
    assert site.alarms.at("a") == first
    live.origin.cancel()
    site.perform(live)
    assert site.alarms.at("a") is None


def test_without_a_bus_an_agent_is_not_told() -> None:
    """It drops by itself what nobody listens to."""
    site, live = Site(), quiet_call()
    site.port.connected = False
    site.perform(live, SendControl("n1", Cancel(call_id="a")))
    assert site.port.sent == []


class CrampedCall(QuietCall):
    """One for whose journal there is no memory."""

    def hold_journal(self, size: int) -> None:
        if size:
            raise Unavailable("this gateway already holds too much.", code="overloaded")
        super().hold_journal(size)


def test_a_journal_without_memory_is_closed_and_its_caller_is_told() -> None:
    """The stream goes on; it cannot go on elsewhere."""
    spec = function_spec("f", method(mode=Mode.GENERATOR), resumable=Resumable())
    call = prepared_call(version=version_record(spec), method=spec.methods[0], stream=True)
    site, live = Site(), CrampedCall(call, Origin(call, "gw1", 0.0))
    live.origin.begin(0.0)
    live.origin.granted(grant(1), 1.0)
    site.perform(live, *live.origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=1, data=b"x"), 2.0))

    assert live.said == [
        "running", (1, (b"x",)), ("not_resumable", {"reason": "this gateway already holds too much."}),
    ]  # fmt: skip
    assert live.journal_bytes == 0
