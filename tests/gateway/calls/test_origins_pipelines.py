"""The driver of the origin side with calls of classes with hooks: a stage begins where the one before has ended."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.errors import BadOutput, FunctionRaised
from pilotlight_core.model.messages.call_messages import Cancel, Chunk, Ended, Grant, Outcome, RemoteError, Run, Spent
from pilotlight_core.model.messages.scheduling import AskCall, Dropped, Enqueue, Settle
from pilotlight_core.model.pipelines.pipeline import HookKind, Pipeline
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.calls.call_pipeline import pipeline_of_call
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.limits.call_usage import CallUsage
from tests.builders.calls import grant
from tests.gateway.calls.quiet_call import QuietCall
from tests.gateway.calls.test_call_pipeline import BOTH, CPU, GPU, call_of
from tests.gateway.calls.test_origins import Site


class Stages:
    """One call of a class with both hooks, and the containers that it is granted."""

    def __init__(self, pipeline_of_class: Pipeline = BOTH, *, stream: bool = False, retries: int = 0) -> None:
        self.site = Site()
        call = call_of(pipeline_of_class, retries=retries)
        call.stream = stream
        call.arrived_at, call.deadline_at = self.site.port.at, self.site.port.at + 60.0
        call.usage = self.usage = CallUsage()
        pipeline = pipeline_of_call(call)
        assert pipeline is not None
        self.live = QuietCall(call, Origin(pipeline.begin(), "gw1", self.site.port.at))
        self.live.pipeline = pipeline
        self.live.shard = shard_of(self.live.origin.call.function)
        self.site.origins.begin(self.live)

    def queued(self) -> Enqueue:
        (asked,) = [item for item in self.site.said() if isinstance(item, Enqueue)]
        return asked

    def run(self) -> Run:
        """The stage that waits is granted a container."""
        number = self.queued().call.grant_number + 1
        self.site.router.origin_inbox.append(grant(number, container=f"c{number}"))
        self.site.turn()
        return self.site.port.told(Run)[-1]

    def end(self, value: Any = None, outcome: Outcome = Outcome.OK, spent: Spent = CPU, **more: Any) -> None:
        held = self.live.origin.grant
        assert held is not None
        ended = Ended(
            call_id="a", grant_number=held.grant_number, container=held.container, outcome=outcome,
            output=msgspec.msgpack.encode(value), spent=spent, **more,
        )  # fmt: skip
        self.site.origins.on_frame("n1", ended)


def test_each_stage_is_queued_at_its_own_home_and_sent_on_its_own_grant() -> None:
    """Under one id and with rising numbers, which no agent takes for a copy; in the end there is one result."""
    stages = Stages()
    first = stages.run()
    assert (first.call_id, first.version, first.grant_number, first.input) == ("a", "ver_pre", 1, b"asked")
    stages.end([1, 2])
    assert stages.live.shard == shard_of("acme:hello.Words")
    assert stages.live.value_bytes > 0
    second = stages.run()
    assert (second.call_id, second.version, second.grant_number) == ("a", "ver_1", 2)
    assert msgspec.msgpack.decode(second.input) == {"numbers": [1, 2]}
    status = stages.site.origins.answer(AskCall(tenant="acme", call_id="a")).status
    assert status is not None
    assert status.version == "hello.Words@v1"
    stages.end(3, spent=GPU)
    third = stages.run()
    assert (third.version, third.grant_number, msgspec.msgpack.decode(third.input)) == ("ver_post", 3, {"answer": 3})
    stages.end("it is 3")

    (result,) = [one for one in stages.live.said if isinstance(one, CallResult)]
    assert msgspec.msgpack.decode(result.output) == "it is 3"
    assert stages.usage.spent == (CPU, GPU, CPU)
    assert (stages.usage.known, stages.usage.lost) == (3, 0)
    assert [type(one) for one in stages.site.said()] == [Settle]
    stages.site.origins.end(stages.live)
    assert len(stages.site.origins) == 0


def test_a_hook_that_fails_begins_nothing_and_says_so() -> None:
    """What it cost is billed, and nothing else."""
    stages = Stages()
    stages.run()
    stages.end(outcome=Outcome.RAISED, error=RemoteError("ValueError", "bad"))

    assert isinstance(stages.live.error, FunctionRaised)
    assert stages.live.error.detail == "ValueError: bad (in read, the @preprocess() hook)"
    assert stages.live.error.more["usage"].ns == CPU.ns
    assert not [item for item in stages.site.said() if isinstance(item, Enqueue)]
    assert stages.usage.spent == (CPU,)


def test_a_later_stage_that_fails_bills_those_before_it_too() -> None:
    """The method's own error says nothing of hooks."""
    stages = Stages()
    stages.run()
    stages.end([1])
    stages.run()
    stages.end(outcome=Outcome.RAISED, error=RemoteError("ValueError", "bad"), spent=GPU)

    assert isinstance(stages.live.error, FunctionRaised)
    assert "stage" not in stages.live.error.more
    assert stages.live.error.more["usage"].ns == CPU.ns + GPU.ns
    assert stages.usage.spent == (CPU, GPU)


def test_a_cancelled_call_takes_the_stage_that_runs() -> None:
    """From the agent that has it, and the next stage is never begun."""
    stages = Stages()
    stages.run()
    assert stages.site.origins.answer(AskCall(tenant="acme", call_id="a", cancel=True)).cancelled
    assert [one.call_id for one in stages.site.port.told(Cancel)] == ["a"]
    stages.site.said()
    late = Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.OK, output=b"\x90")
    stages.site.origins.on_frame("n1", late)
    assert stages.live.origin.state is OriginState.DONE
    assert not [item for item in stages.site.said() if isinstance(item, Enqueue)]
    assert stages.usage.is_open is False


def test_a_late_frame_of_a_stage_that_is_over_changes_nothing() -> None:
    """Its grant's number is lower; a grant of before is declined."""
    stages = Stages()
    stages.run()
    stages.end([1])
    before = stages.live.origin
    stages.site.origins.on_frame("n1", Ended(call_id="a", grant_number=1, container="c1", outcome=Outcome.DIED))
    stages.site.said()
    stages.site.router.origin_inbox.append(Grant(
        call_id="a", container="c9", node="n1", instance="i1", epoch=1, grant_number=1, home="gw1",
    ))  # fmt: skip
    stages.site.turn()

    assert (stages.live.origin is before, before.state) == (True, OriginState.QUEUED)
    assert [type(item) for item in stages.site.said()] == [Settle, Enqueue]


def test_a_late_word_of_the_home_of_an_earlier_stage_drops_nothing() -> None:
    """The copy of a call that was queued twice there leaves the queue; its own home's word counts."""
    stages = Stages()
    stages.run()
    stages.end([1])
    for version, state in (("ver_pre", OriginState.QUEUED), ("ver_1", OriginState.DONE)):
        stages.site.router.origin_inbox.append(
            Dropped(call_id="a", gateway="gw1", code="queue_full", detail="full", version=version)
        )
        stages.site.turn()
        assert stages.live.origin.state is state


def test_an_answer_that_got_lost_between_stages_fails_the_call() -> None:
    """The method is not run on nothing."""
    stages = Stages()
    stages.run()
    stages.end(answer_size=300_000)
    assert stages.live.error is not None
    assert stages.live.error.wire_code == "container_died"


def test_values_that_have_no_room_are_refused_and_those_that_do_not_fit() -> None:
    """Of a hook that returns no dict for a method of several arguments it is a bad output."""
    stages = Stages()
    assert stages.live.pipeline is not None
    stages.live.pipeline._pipeline = msgspec.structs.replace(BOTH, takes={"add": ""})
    stages.run()
    stages.end([1])
    assert isinstance(stages.live.error, BadOutput)
    assert stages.live.error.more["stage"] == HookKind.PREPROCESS


def test_a_stream_begins_behind_its_hook() -> None:
    """What the hook returned is no event of it; its stages are told by their names."""
    stages = Stages(Pipeline(preprocess=BOTH.preprocess, takes={"add": "numbers"}), stream=True)
    stages.run()
    stages.end([1])
    run = stages.run()
    for seq in (1, 2):
        chunk = Chunk(call_id="a", grant_number=run.grant_number, seq=seq, data=b"%d" % seq)
        stages.site.origins.on_frame("n1", chunk)
    stages.end(last_seq=2)
    *said, result = stages.live.said

    assert [one for one in said if isinstance(one, tuple)] == [(1, (b"1",)), (2, (b"2",))]
    assert isinstance(result, CallResult)


def test_a_stage_that_raised_is_tried_again_alone() -> None:
    """What was before it is done; the end of each of its starts is billed."""
    stages = Stages(retries=1)
    stages.run()
    stages.end([1])
    stages.run()
    stages.end(outcome=Outcome.RAISED, error=RemoteError("ValueError", "bad"), spent=GPU)
    assert stages.live.origin.state is OriginState.WAITING
    stages.site.said()
    stages.site.port.at += 1.0
    stages.site.turn()
    again = stages.run()

    assert (again.version, again.grant_number) == ("ver_1", 3)
    assert msgspec.msgpack.decode(again.input) == {"numbers": [1]}
    stages.end(3, spent=GPU)
    stages.run()
    stages.end("it is 3")
    (result,) = [one for one in stages.live.said if isinstance(one, CallResult)]
    assert (result.attempts, stages.usage.known) == (2, 4)
    assert sum(one.ns for one in stages.usage.spent) == 2 * CPU.ns + 2 * GPU.ns
