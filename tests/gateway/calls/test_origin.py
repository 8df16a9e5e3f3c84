"""The life of one call as its origin decides it: placements, re-runs, retries, streams, deadlines, cancels."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import (
    Cancelled,
    ContainerDied,
    DeadlineExceeded,
    ExecutionTimeout,
    FunctionRaised,
    LoadFailed,
    PilotlightError,
    TooMuch,
    Unavailable,
)
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Chunk,
    Ended,
    Outcome,
    Refusal,
    Refused,
    RemoteError,
    Spent,
    Stages,
    Started,
    Window,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HandBack, Settle, Withdraw
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import Effect, FailCall, RelayChunk, ReportStage, SendControl, SendRun
from pilotlight_gateway.calls.origin import (
    LAST_WORDS_S,
    MAX_PLACEMENTS,
    MAX_RERUNS,
    REPEAT_EVERY_S,
    UNREAD_BYTES,
    UNREAD_CHUNKS,
    Origin,
    OriginState,
)
from pilotlight_gateway.calls.prepared_call import WINDOW
from tests.builders.calls import grant, prepared_call


def queued(**more: Any) -> Origin:
    origin = Origin(prepared_call(**more), "gw1", 0.0)
    origin.begin(0.0)
    origin.placed()
    return origin


def sent(**more: Any) -> Origin:
    origin = queued(**more)
    origin.granted(grant(1), 1.0)
    return origin


def running(**more: Any) -> Origin:
    origin = sent(**more)
    origin.frame("n1", Started(call_id="a", grant_number=1), 2.0)
    return origin


def ended(outcome: Outcome = Outcome.OK, number: int = 1, **more: Any) -> Ended:
    return Ended(call_id="a", grant_number=number, container="c1", outcome=outcome, **more)


def error_of(actions: list[Effect]) -> PilotlightError:
    (failed,) = [action for action in actions if isinstance(action, FailCall)]
    return failed.error


def kinds(actions: list[Effect]) -> list[str]:
    return [type(action).__name__ for action in actions]


def test_a_call_is_queued_sent_and_answered() -> None:
    """The plain life: one enqueue, one run, one answer, one account settled."""
    origin = Origin(prepared_call(input=b"in", gateway_ms=0.5), "gw1", 0.0)
    (enqueue,) = origin.begin(0.0)
    assert isinstance(enqueue, Enqueue)
    assert (enqueue.call.call_id, enqueue.call.remaining_ms, enqueue.call.admitted) == ("a", 60_000.0, False)
    (send,) = origin.granted(grant(1), 1.0)
    assert isinstance(send, SendRun)
    assert (send.node, send.run.container, send.run.grant_number, send.run.input) == ("n1", "c1", 1, b"in")
    assert (send.run.start_within_ms, send.run.timeout_ms) == (59_000.0, 59_000.0)
    assert origin.frame("n1", Started(call_id="a", grant_number=1), 1.1) == []

    spent = Spent(ns=2_000_000, ppm=500_000, price="h100")
    stages = Stages(batch_wait_ms=100.0, execute_ms=300.0, total_ms=450.0)
    settle, finish = origin.frame("n1", ended(output=b"out", spent=spent, stages=stages), 1.5)
    assert settle == Settle(call_id="a", node="n1", container="c1", grant_number=1, cost=1.0, outcome=Outcome.OK)
    assert isinstance(finish, CallResult)
    assert (finish.output, finish.attempts, finish.container, finish.cold_start) == (b"out", 1, "c1", None)
    assert finish.stages == pytest.approx(
        {"gateway": 0.5, "queue": 1000.0, "start": 0.0, "transport": 100.0, "batch_wait": 100.0, "execute": 300.0}
    )
    assert origin.state is OriginState.DONE


def test_stages_are_told_to_those_who_asked() -> None:
    """Queued and running, with the time since the request arrived."""
    origin = Origin(prepared_call(stream=True, arrived_at=-1.0), "gw1", 0.0)
    assert origin.begin(0.0)[0] == ReportStage("queued", 1000.0)
    origin.granted(grant(1), 1.0)
    assert origin.frame("n1", Started(call_id="a", grant_number=1), 2.0) == [ReportStage("running", 3000.0)]


def test_a_start_that_was_waited_for_is_shown_apart_from_the_queue() -> None:
    """Two of three seconds in the queue were a cold start."""
    origin = queued()
    origin.granted(grant(1, start_ms=2_000.0, timeline={"load": 1_900.0}), 3.0)
    (_, finish) = origin.frame("n1", ended(), 3.5)
    assert isinstance(finish, CallResult)
    assert (finish.stages["queue"], finish.stages["start"]) == pytest.approx((1_000.0, 2_000.0))
    assert finish.cold_start == {"load": 1_900.0}


# -- where it may go -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [r for r in Refusal if r is not Refusal.DUPLICATE])
def test_a_refused_call_goes_elsewhere(reason: Refusal) -> None:
    """Whatever the reason, it never started."""
    origin = sent()
    (back,) = origin.frame("n1", Refused(call_id="a", grant_number=1, container="c1", reason=reason), 1.1)
    assert isinstance(back, HandBack)
    assert (back.container, back.epoch, back.reason, back.call.grant_number) == ("c1", 1, reason, 1)
    assert kinds(origin.granted(grant(2, container="c2"), 1.2)) == ["SendRun"]


def test_a_duplicate_means_that_the_first_copy_was_taken() -> None:
    """The bus delivered a run twice: the call runs."""
    origin = sent()
    assert origin.frame("n1", Refused(call_id="a", grant_number=1, container="c1", reason=Refusal.DUPLICATE), 1.1) == []
    assert origin.state is OriginState.SENT


def test_nobody_listening_is_proof_that_it_was_never_sent() -> None:
    """The server's 503 sends it elsewhere, also when it is not idempotent."""
    origin = sent()
    assert origin.no_responders(9, 1.1) == []
    (back,) = origin.no_responders(1, 1.1)
    assert isinstance(back, HandBack)
    assert back.reason is Refusal.GONE
    assert origin.no_responders(1, 1.2) == []


def test_nobody_listening_for_a_started_call_is_no_proof() -> None:
    """A late 503 of another copy must not run it twice."""
    assert running().no_responders(1, 3.0) == []


@pytest.mark.parametrize("outcome", [Outcome.DIED, Outcome.TIMEOUT, Outcome.CANCELLED])
def test_what_ended_before_it_started_goes_elsewhere(outcome: Outcome) -> None:
    """A neighbour killed the container, or it was drained: this call never ran."""
    assert kinds(sent().frame("n1", ended(outcome, started=False), 2.0)) == ["HandBack"]


def test_placements_are_bounded() -> None:
    """A call that ten containers turned away fails instead of wandering for ever."""
    origin = queued()
    for number in range(1, MAX_PLACEMENTS):
        origin.granted(grant(number), 1.0)
        refused = Refused(call_id="a", grant_number=number, container="c1", reason=Refusal.NO_SLOT)
        assert kinds(origin.frame("n1", refused, 1.0)) == ["HandBack"]
    origin.granted(grant(MAX_PLACEMENTS), 1.0)
    refused = Refused(call_id="a", grant_number=MAX_PLACEMENTS, container="c1", reason=Refusal.NO_SLOT)
    assert isinstance(error_of(origin.frame("n1", refused, 1.0)), Unavailable)


def test_only_one_grant_is_ever_in_use() -> None:
    """A second grant is declined, a repetition of the one in use is not."""
    origin = sent()
    assert origin.granted(grant(1), 1.1) == []
    assert origin.granted(grant(2, container="c2"), 1.1) == [
        Settle(call_id="a", node="n1", container="c2", grant_number=2)
    ]


def test_a_grant_that_is_not_newer_is_declined_and_the_call_queued_again() -> None:
    """Grant 1 was refused; a copy of it must not be used."""
    origin = sent()
    origin.frame("n1", Refused(call_id="a", grant_number=1, container="c1", reason=Refusal.NO_SLOT), 1.1)
    assert kinds(origin.granted(grant(1), 1.2)) == ["Settle", "Enqueue"]
    assert origin.state is OriginState.QUEUED


def test_a_grant_of_a_home_that_was_replaced_is_declined() -> None:
    """A paused home wakes up and grants: only the present one counts."""
    origin = queued()
    (enqueue,) = origin.home_changed(5, 1.0)
    assert isinstance(enqueue, Enqueue)
    assert enqueue.call.admitted
    assert kinds(origin.granted(grant(1, epoch=4), 1.1)) == ["Settle"]
    assert kinds(origin.granted(grant(1, epoch=5), 1.2)) == ["SendRun"]


def test_a_new_home_changes_nothing_for_a_call_that_was_sent() -> None:
    """It runs where it runs."""
    origin = sent()
    assert origin.home_changed(5, 1.1) == []
    assert kinds(origin.frame("n1", ended(), 2.0)) == ["Settle", "CallResult"]


def test_a_call_that_waits_is_repeated() -> None:
    """Every two seconds, in case home or bus lost it."""
    origin = queued()
    assert origin.wake_at == REPEAT_EVERY_S
    assert origin.tick(1.0) == []
    (enqueue,) = origin.tick(REPEAT_EVERY_S)
    assert isinstance(enqueue, Enqueue)
    assert enqueue.call.age_ms == REPEAT_EVERY_S * 1000.0
    assert origin.wake_at == 2 * REPEAT_EVERY_S


# -- what counts as started ------------------------------------------------------------------------------------------


def lose(origin: Origin, at: float, how: str) -> list[Effect]:
    if how == "node":
        held = origin.grant
        assert held is not None
        said = origin.node_gone(held.node, held.instance, "its node was silent", at)
        return said or origin.tick(at + LAST_WORDS_S)
    number = origin.grant.grant_number if origin.grant else 0
    return origin.frame("n1", ended(Outcome.DIED, number, reason="exit code 139"), at)


@pytest.mark.parametrize("how", ["node", "container"])
@pytest.mark.parametrize("make", [sent, running])
def test_what_was_sent_and_lost_counts_as_started(how: str, make: Any) -> None:
    """Not idempotent: the caller gets container_died with the reason, and nothing is run again."""
    actions = lose(make(), 3.0, how)
    error = error_of(actions)
    assert isinstance(error, ContainerDied)
    assert ("silent" if how == "node" else "139") in error.detail
    assert "Enqueue" not in kinds(actions)


@pytest.mark.parametrize("how", ["node", "container"])
def test_an_idempotent_call_is_run_again_at_most_twice(how: str) -> None:
    """Three starts in all, then container_died."""
    origin = queued(idempotent=True)
    for number in range(1, MAX_RERUNS + 1):
        origin.granted(grant(number), float(number))
        assert "Enqueue" in kinds(lose(origin, number + 0.5, how))
    origin.granted(grant(MAX_RERUNS + 1), 8.0)
    assert isinstance(error_of(lose(origin, 9.0, how)), ContainerDied)


def test_attempts_count_every_start() -> None:
    """The answer says how often it took."""
    origin = running(idempotent=True)
    lose(origin, 3.0, "node")
    origin.granted(grant(2), 4.0)
    (_, finish) = origin.frame("n1", ended(number=2, stages=Stages(execute_ms=500.0)), 5.0)
    assert isinstance(finish, CallResult)
    assert finish.attempts == 2
    assert sum(finish.stages.values()) == pytest.approx(5_000.0)


def test_a_run_may_have_reached_the_nodes_next_agent() -> None:
    """Sent while the node was being restarted: its new agent knows that it never started."""
    origin = sent()
    assert origin.node_gone("n1", "i1", "started anew", 2.0) == []
    assert origin.tick(2.5) == []
    refused = Refused(call_id="a", grant_number=1, container="c1", reason=Refusal.GONE)
    assert kinds(origin.frame("n1", refused, 2.6)) == ["HandBack"]
    assert running().node_gone("n1", "i1", "started anew", 3.0) != []


def test_a_node_that_is_not_ours_takes_nothing_along() -> None:
    """Neither another node nor another incarnation of ours."""
    origin = running()
    assert origin.node_gone("n2", "i1", "", 3.0) == []
    assert origin.node_gone("n1", "i0", "", 3.0) == []
    assert queued().node_gone("n1", "i1", "", 3.0) == []


def test_frames_of_an_older_grant_are_ignored() -> None:
    """The first run was given up; its late answer is not the answer of the second."""
    origin = running(idempotent=True)
    lose(origin, 3.0, "node")
    assert origin.frame("n1", ended(output=b"late"), 3.5) == []
    origin.granted(grant(2), 4.0)
    frames: list[CallFrame] = [
        Started(call_id="a", grant_number=1),
        Chunk(call_id="a", grant_number=1, seq=1, data=b""),
        ended(output=b"late"),
        Refused(call_id="a", grant_number=1, container="c1", reason=Refusal.GONE),
    ]  # fmt: skip
    for frame in frames:
        assert origin.frame("n1", frame, 4.5) == []
    assert origin.state is OriginState.SENT


def test_a_dead_containers_last_words_are_waited_for() -> None:
    """Its death comes by several ways; the one that knows the call decides, and else the call was lost."""
    origin = sent()
    assert origin.container_gone("n1", "c9", "killed", 2.0) == []
    assert origin.container_gone("n2", "c1", "killed", 2.0) == []
    assert origin.wake_at == 60.0
    assert origin.container_gone("n1", "c1", "killed", 2.0) == []
    assert origin.wake_at == 2.0 + LAST_WORDS_S
    assert kinds(origin.frame("n1", ended(Outcome.DIED, started=False), 2.5)) == ["HandBack"]

    origin = sent()
    origin.container_gone("n1", "c1", "killed", 2.0)
    assert "killed" in error_of(origin.tick(2.0 + LAST_WORDS_S)).detail


# -- how the function ended it ---------------------------------------------------------------------------------------

RAISED = RemoteError("ValueError", "no such town", "Traceback …")


def test_code_that_raised_is_the_callers_to_see() -> None:
    """With the traceback; a crash is not a raise, so idempotent does not matter."""
    actions = running(idempotent=True).frame("n1", ended(Outcome.RAISED, error=RAISED), 3.0)
    error = error_of(actions)
    assert isinstance(error, FunctionRaised)
    assert (error.detail, error.remote_traceback) == ("ValueError: no such town", "Traceback …")
    assert kinds(actions) == ["Settle", "FailCall"]


def test_code_that_raised_is_retried_after_a_backoff() -> None:
    """`retries=` times, each wait twice as long."""
    origin = queued(retries=2)
    for number, wait in ((1, 0.1), (2, 0.2)):
        at = float(number)
        origin.granted(grant(number), at)
        assert kinds(origin.frame("n1", ended(Outcome.RAISED, number, error=RAISED), at)) == ["Settle"]
        assert origin.wake_at == pytest.approx(at + wait)
        assert origin.tick(at + wait / 2) == []
        (enqueue,) = origin.tick(at + wait)
        assert isinstance(enqueue, Enqueue)
        assert (enqueue.call.grant_number, enqueue.call.admitted) == (number, True)
    origin.granted(grant(3), 3.0)
    assert isinstance(error_of(origin.frame("n1", ended(Outcome.RAISED, 3, error=RAISED), 3.1)), FunctionRaised)


def fail_of(actions: list[Effect]) -> FailCall:
    (failed,) = [action for action in actions if isinstance(action, FailCall)]
    return failed


HALF_MS = Spent(ns=1_000_000, ppm=500_000, price="h100")


def test_what_all_starts_have_taken_is_summed() -> None:
    """Of a call that raised first, and was answered or raised again then; also in its receipt."""
    for outcome in (Outcome.OK, Outcome.RAISED):
        origin = running(retries=1)
        origin.frame("n1", ended(Outcome.RAISED, spent=HALF_MS), 3.0)
        origin.tick(4.0)
        origin.granted(grant(2), 5.0)
        actions = origin.frame("n1", ended(outcome, number=2, spent=HALF_MS), 6.0)

        last = actions[-1]
        assert isinstance(last, CallResult | FailCall)
        assert (origin.cost, origin.lost_starts) == (1.0, 0)
        if isinstance(last, CallResult):
            assert last.spent == Spent(ns=2_000_000, ppm=500_000, price="h100")


def test_starts_that_paid_for_other_parts_of_the_host_are_not_summed() -> None:
    """As those on slices of several kinds: a receipt has one price of each."""
    origin = running(retries=1)
    origin.frame("n1", ended(Outcome.RAISED, spent=HALF_MS), 3.0)
    origin.tick(4.0)
    origin.granted(grant(2), 5.0)
    dearer = msgspec.structs.replace(HALF_MS, core_ppm=5)

    last = origin.frame("n1", ended(Outcome.OK, number=2, spent=dearer), 6.0)[-1]

    assert isinstance(last, CallResult)
    assert last.spent == dearer


def test_what_nobody_can_tell_is_lost() -> None:
    """A start that is given up with its node, and one that its agent knows nothing of."""
    origin = running()
    failed = fail_of(origin.node_gone("n1", "i1", "gone", 3.0))
    assert (origin.cost, origin.starts, origin.lost_starts, failed.left) == (0.0, 1, 1, None)

    origin = running()
    unknown = Ended(call_id="a", grant_number=1, container="", outcome=Outcome.DIED)
    fail_of(origin.frame("n1", unknown, 3.0))
    assert (origin.cost, origin.starts, origin.lost_starts) == (0.0, 1, 1)


def test_a_call_that_is_left_tells_what_may_run_on() -> None:
    """By a cancel or the deadline, once it was sent; what waits has cost nothing."""
    for make in (sent, running):
        assert fail_of(make().cancel()).left == grant(1)
        assert fail_of(make().tick(60.0)).left == grant(1)
    waiting = queued()
    assert fail_of(waiting.cancel()).left is None
    assert (waiting.cost, waiting.starts) == (0.0, 0)
    assert fail_of(running().frame("n1", ended(Outcome.RAISED, spent=HALF_MS), 3.0)).left is None


def test_a_retry_that_the_deadline_does_not_allow_is_not_begun() -> None:
    """The caller gets the function's error, not a timeout."""
    origin = sent(retries=3, deadline_at=2.05)
    assert isinstance(error_of(origin.frame("n1", ended(Outcome.RAISED, error=RAISED), 2.0)), FunctionRaised)


def test_a_grant_during_the_backoff_is_declined() -> None:
    """Nothing runs before its time."""
    origin = sent(retries=1)
    origin.frame("n1", ended(Outcome.RAISED, error=RAISED), 2.0)
    assert kinds(origin.granted(grant(2), 2.05)) == ["Settle"]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome.LOAD_FAILED, LoadFailed),
        (Outcome.TIMEOUT, ExecutionTimeout),
        (Outcome.BAD_OUTPUT, PilotlightError),
        (Outcome.DIED, ContainerDied),
    ],
)
def test_each_bad_end_has_its_error(outcome: Outcome, expected: type[PilotlightError]) -> None:
    """And none of them is retried because of `retries=`."""
    actions = running(retries=5).frame("n1", ended(outcome, error=RAISED, reason="memory limit of 2.0 GiB"), 3.0)
    assert isinstance(error_of(actions), expected)
    assert kinds(actions)[0] == "Settle"


def test_a_load_failure_brings_the_remote_traceback() -> None:
    """Even though the call itself never started."""
    error = error_of(sent().frame("n1", ended(Outcome.LOAD_FAILED, started=False, error=RAISED), 3.0))
    assert error.more["traceback"] == "Traceback …"


# -- streams ---------------------------------------------------------------------------------------------------------


def chunk(seq: int, number: int = 1) -> Chunk:
    return Chunk(call_id="a", grant_number=number, seq=seq, data=b"x")


def test_chunks_are_relayed_in_order_and_once() -> None:
    """The first chunk also says that it has started."""
    origin = sent()
    assert origin.frame("n1", chunk(1), 2.0) == [RelayChunk(1, b"x")]
    assert origin.state is OriginState.RUNNING
    assert origin.frame("n1", chunk(1), 2.0) == []
    assert origin.frame("n1", chunk(2), 2.0) == [RelayChunk(2, b"x")]
    assert kinds(origin.frame("n1", ended(last_seq=2), 3.0)) == ["Settle", "CallResult"]


def test_a_gap_in_a_stream_ends_it() -> None:
    """The caller is told rather than given a stream with a hole."""
    origin = sent()
    origin.frame("n1", chunk(1), 2.0)
    assert kinds(origin.frame("n1", chunk(3), 2.0)) == ["SendControl", "FailCall"]
    origin = sent()
    origin.frame("n1", chunk(1), 2.0)
    assert kinds(origin.frame("n1", ended(last_seq=2), 2.0)) == ["Settle", "FailCall"]


@pytest.mark.parametrize("outcome", [Outcome.RAISED, Outcome.DIED])
def test_a_stream_is_never_run_again_once_a_chunk_was_relayed(outcome: Outcome) -> None:
    """Its caller has seen a part of the first answer."""
    origin = sent(idempotent=True, retries=3)
    origin.frame("n1", chunk(1), 2.0)
    assert kinds(origin.frame("n1", ended(outcome, error=RAISED, last_seq=1), 3.0)) == ["Settle", "FailCall"]


def test_a_stream_that_was_lost_before_its_first_chunk_may_run_again() -> None:
    """Nobody has seen anything of it; the second run counts its chunks from 1."""
    origin = running(idempotent=True)
    assert "Enqueue" in kinds(lose(origin, 3.0, "node"))
    origin.granted(grant(2), 4.0)
    assert origin.frame("n1", chunk(1, 2), 4.1) == [RelayChunk(1, b"x")]


def flood(origin: Origin, chunks: int, size: int) -> list[Effect]:
    """What comes of the next `chunks` chunks, but that they are relayed."""
    first = origin._seq + 1
    actions = [
        action
        for seq in range(first, first + chunks)
        for action in origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=seq, data=b"x" * size), 2.0)
    ]
    return [action for action in actions if not isinstance(action, RelayChunk)]


def test_small_chunks_flow_before_they_are_read() -> None:
    """The container is told to go on at every half window, until too many chunks are unread."""
    origin = running()
    assert flood(origin, WINDOW // 2 - 1, 1) == []
    assert flood(origin, 1, 1) == [SendControl("n1", Window(call_id="a", upto=WINDOW // 2))]
    assert len(flood(origin, UNREAD_CHUNKS - WINDOW // 2, 1)) == (UNREAD_CHUNKS - WINDOW // 2) // (WINDOW // 2)
    assert flood(origin, WINDOW, 1) == []
    assert origin.was_read(1) == []
    told = [action for _ in range(WINDOW) for action in origin.was_read(1)]
    assert told == [SendControl("n1", Window(call_id="a", upto=UNREAD_CHUNKS + WINDOW))]


def test_large_chunks_wait_for_their_reader() -> None:
    """Whatever the container sends, only so many bytes are unread: it is told to go on when they are fewer."""
    origin = running()
    size = UNREAD_BYTES // 2
    assert flood(origin, WINDOW, size) == []
    reading = [origin.was_read(size) for _ in range(WINDOW - 2)]
    assert reading == [[]] * (WINDOW - 3) + [[SendControl("n1", Window(call_id="a", upto=WINDOW))]]


def test_a_stream_that_is_over_is_not_told_to_go_on() -> None:
    """Its caller may still read what it has."""
    origin = running()
    flood(origin, WINDOW, UNREAD_BYTES)
    origin.cancel()
    assert [origin.was_read(UNREAD_BYTES) for _ in range(WINDOW)] == [[]] * WINDOW


# -- ends that come from here ----------------------------------------------------------------------------------------


def test_the_deadline_takes_a_waiting_call_out_of_the_queue() -> None:
    """It never ran, and will not."""
    actions = queued().tick(60.0)
    assert actions[0] == Withdraw("a")
    assert isinstance(error_of(actions), DeadlineExceeded)


def test_a_call_that_waited_in_vain_hears_why() -> None:
    """What the controller said of its version, if it was said of late."""
    told, long_ago = queued(), queued()
    told.note_shortage("the function's owner may have 2 at a time (limit containers)", 59.0)
    long_ago.note_shortage("the fleet has no GPU", 1.0)

    assert error_of(told.tick(60.0)).detail.endswith(
        "while the call waited for a container: the function's owner may have 2 at a time (limit containers)."
    )
    assert error_of(long_ago.tick(60.0)).detail.endswith("while the call waited for a container.")


@pytest.mark.parametrize("make", [sent, running])
def test_the_deadline_is_told_to_the_agent_that_has_it(make: Any) -> None:
    """And to the caller."""
    origin = make()
    assert origin.wake_at == 60.0
    actions = origin.tick(60.0)
    assert kinds(actions) == ["SendControl", "FailCall"]
    assert isinstance(error_of(actions), DeadlineExceeded)
    assert origin.tick(61.0) == []


def test_a_grant_after_the_deadline_is_not_used() -> None:
    """A process that slept through the deadline must not send it."""
    assert kinds(queued().granted(grant(1), 61.0)) == ["Settle", "Withdraw", "FailCall"]


def test_cancel_before_the_grant_means_it_never_runs() -> None:
    """Taken out of the queue; a grant on its way is declined."""
    origin = queued()
    assert kinds(origin.cancel()) == ["Withdraw", "FailCall"]
    assert kinds(origin.granted(grant(1), 1.0)) == ["Settle"]
    assert origin.cancel() == []


def test_cancel_after_the_grant_reaches_the_agent() -> None:
    """The caller has its answer at once; the late end only settles the account."""
    origin = running()
    actions = origin.cancel()
    assert kinds(actions) == ["SendControl", "FailCall"]
    assert isinstance(error_of(actions), Cancelled)
    assert kinds(origin.frame("n1", ended(Outcome.CANCELLED), 3.0)) == ["Settle"]
    assert origin.frame("n1", Started(call_id="a", grant_number=1), 3.0) == []


def test_what_the_home_refuses_or_drops_fails_the_call() -> None:
    """With the home's own words; what it says too late changes nothing."""
    full = TooMuch("full", code="queue_full", retry_after=3.0)
    assert error_of(queued().refused_entry(full)) is full
    assert sent().refused_entry(full) == []
    dropped = Dropped(call_id="a", gateway="gw1", code="load_failed", detail="cannot load", error=RAISED)
    error = error_of(queued().dropped(dropped))
    assert isinstance(error, LoadFailed)
    assert error.more["traceback"] == "Traceback …"
    assert sent().dropped(dropped) == []


def test_what_no_home_has_heard_of_is_not_called_admitted() -> None:
    """A call that came while nobody was its function's home is admitted, or refused, by the first that is."""
    origin = Origin(prepared_call(), "gw1", 0.0)
    origin.begin(0.0)

    (enqueue,) = origin.home_changed(5, 1.0)
    assert isinstance(enqueue, Enqueue)
    assert not enqueue.call.admitted

    origin.placed()
    (again,) = origin.home_changed(6, 2.0)
    assert isinstance(again, Enqueue)
    assert again.call.admitted
