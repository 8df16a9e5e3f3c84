"""The life of one call as its origin decides it: placements, losses, ends of the function, deadlines, cancels."""

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
    Preempted,
    TooMuch,
)
from pilotlight_core.model.messages.call_messages import (
    CallFrame,
    Chunk,
    Outcome,
    Refusal,
    Refused,
    Spent,
    Stages,
    Started,
)
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HandBack, Settle, Withdraw
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.rollouts.rollout_record import Arm
from pilotlight_core.model.rollouts.split import Side
from pilotlight_gateway.calls.attempts import course_of
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import FailedStart, ReportStage, SendRun
from pilotlight_gateway.calls.origin import LAST_WORDS_S, REPEAT_EVERY_S, Origin, OriginState
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, method, version_record
from tests.gateway.calls.origin_steps import (
    HALF_MS,
    RAISED,
    ended,
    error_of,
    fail_of,
    kinds,
    lose,
    queued,
    running,
    sent,
)


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


@pytest.mark.parametrize("how", ["node", "container"])
@pytest.mark.parametrize("make", [sent, running])
def test_what_was_sent_and_lost_counts_as_started(how: str, make: Any) -> None:
    """Not idempotent: the caller gets container_died with the reason, and nothing is run again."""
    actions = lose(make(), 3.0, how)
    error = error_of(actions)
    assert isinstance(error, ContainerDied)
    assert ("silent" if how == "node" else "139") in error.detail
    assert "Enqueue" not in kinds(actions)


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


def test_a_call_whose_node_is_taken_away_ends_as_that() -> None:
    """Its agent ended it in time: an idempotent one runs again, at the operator's cost; any other is told why."""
    free = msgspec.structs.replace(HALF_MS, fault=Fault.PLATFORM)
    last = ended(Outcome.DIED, preempted=True, reason="its node is taken away (a drill)", spent=free)
    failed = fail_of(running().frame("n1", last, 3.0))
    assert isinstance(failed.error, Preempted)
    assert "a drill" in failed.error.detail

    again = running(idempotent=True)
    assert "Enqueue" in kinds(again.frame("n1", last, 3.0))
    assert course_of([again.attempts], 3.0, 0.0, sent=False).spent is None


@pytest.mark.parametrize("how", ["node", "container", "frame"])
def test_a_call_of_which_nothing_is_heard_from_a_node_that_is_taken_away_ends_as_that(how: str) -> None:
    """Its last frame was lost, with its container or its node; what is said of another container changes nothing."""
    for container, expected in (("c1", Preempted), ("c9", ContainerDied)):
        origin = running()
        origin.container_preempted(container, is_so=True)
        lost = msgspec.structs.replace(ended(Outcome.DIED, reason="its last frame was lost"), container="")
        if how == "frame":
            effects = origin.frame("n1", lost, 3.0)
        elif how == "node":
            effects = lose(origin, 3.0, "node")
        else:
            effects = origin.container_gone("n1", "c1", "killed", 3.0) or origin.tick(3.0 + LAST_WORDS_S)
        assert isinstance(error_of(effects), expected)


def test_what_is_lost_and_stays_billed_is_not_billed_again() -> None:
    """Of a call that runs again: for as long as the longest of its lost starts can have been; not after an end."""
    origin = sent(idempotent=True, retries=1)
    lose(origin, 3.0, "node")
    (run,) = origin.granted(grant(2), 5.0)
    assert isinstance(run, SendRun)
    assert run.run.lost_ms == pytest.approx(3_000.0, abs=1_001.0)
    lost = msgspec.structs.replace(ended(Outcome.DIED, 2, reason="its last frame was lost"), container="")
    origin.frame("n1", lost, 15.0)
    (run,) = origin.granted(grant(3), 16.0)
    assert isinstance(run, SendRun)
    assert run.run.lost_ms == 10_000.0
    origin.frame("n1", ended(Outcome.RAISED, 3, error=RAISED), 17.0)
    origin.tick(18.0)
    (run,) = origin.granted(grant(4), 18.0)
    assert isinstance(run, SendRun)
    assert run.run.lost_ms == 0.0


def test_no_more_is_taken_off_a_bill_than_a_start_can_have_cost() -> None:
    """A node that falls silent is missed late, or says so: its agent would have ended the call at its timeout."""
    spec = function_spec("fn", method(), idempotent=True, timeout=4.0)
    origin = sent(version=version_record(spec, app="app"))
    lose(origin, 30.0, "node")
    (run,) = origin.granted(grant(2), 31.0)
    assert isinstance(run, SendRun)
    assert run.run.lost_ms == 4_000.0


def test_what_an_agent_has_given_up_stays_billed_and_is_not_billed_again() -> None:
    """It had not heard from here for long."""
    origin = running(idempotent=True)
    origin.frame("n1", ended(Outcome.CANCELLED, spent=HALF_MS), 9.0)
    (run,) = origin.granted(grant(2), 10.0)
    assert isinstance(run, SendRun)
    assert run.run.lost_ms == 8_000.0


def test_what_a_function_ends_itself_was_not_taken_away() -> None:
    """Its agent knows how it ended; nor was what stays since the notice is withdrawn."""
    origin = running()
    origin.container_preempted("c1", is_so=True)
    assert isinstance(error_of(origin.frame("n1", ended(Outcome.DIED, by_tenant=True), 3.0)), ContainerDied)

    origin = running()
    origin.container_preempted("c1", is_so=True)
    origin.container_preempted("c1", is_so=False)
    assert isinstance(error_of(lose(origin, 3.0, "node")), ContainerDied)


def test_a_stream_whose_node_is_taken_away_has_a_receipt_for_its_part() -> None:
    """Idempotent or not: its caller has that part."""
    origin = running(stream=True, idempotent=True)
    origin.frame("n1", Chunk(call_id="a", grant_number=1, seq=1, data=b"1"), 2.5)
    last = ended(Outcome.DIED, preempted=True, last_seq=1, spent=HALF_MS)
    assert isinstance(error_of(origin.frame("n1", last, 3.0)), Preempted)
    course = course_of([origin.attempts], 3.0, 0.0, sent=False)
    assert course.spent == HALF_MS
    assert course.container == "c1"


# -- how the function ended it ---------------------------------------------------------------------------------------


def test_code_that_raised_is_the_callers_to_see() -> None:
    """With the traceback; a crash is not a raise, so idempotent does not matter."""
    actions = running(idempotent=True).frame("n1", ended(Outcome.RAISED, error=RAISED), 3.0)
    error = error_of(actions)
    assert isinstance(error, FunctionRaised)
    assert (error.detail, error.remote_traceback) == ("ValueError: no such town", "Traceback …")
    assert kinds(actions) == ["Settle", "FailCall"]


COURSE = CallResult(output=b"", container="c1")
CANARY, TWIN = Side("rol_1", Arm.CANARY, 0.5, ""), Side("rol_1", Arm.TWIN, 0.5, "")


def test_what_a_new_version_fails_it_does_not_try_again() -> None:
    """The old one does, whatever may be repeated; a node that is taken away is not its fault."""
    options: dict[str, Any] = {"side": CANARY, "retries": 2, "idempotent": True}
    raised = running(**options).frame("n1", ended(Outcome.RAISED, error=RAISED), 3.0)
    assert isinstance(error_of(raised), FunctionRaised)
    assert isinstance(error_of(lose(running(**options), 3.0, "container")), ContainerDied)
    taken = running(**options).frame("n1", ended(Outcome.DIED, preempted=True), 3.0)
    assert kinds(taken) == ["Settle", "Enqueue"]


@pytest.mark.parametrize(("side", "told"), [(TWIN, True), (Side("rol_1", Arm.CONTROL, 0.0, ""), True), (None, False)])
def test_a_failed_start_of_a_call_of_a_rollout_is_told_before_it_runs_again(side: Side | None, *, told: bool) -> None:
    """So that both versions are judged by their first starts, and what is usual is known by those too."""
    options: dict[str, Any] = {"side": side, "retries": 2, "idempotent": True}
    raised = running(**options).frame("n1", ended(Outcome.RAISED, error=RAISED), 3.0)
    assert [one for one in raised if isinstance(one, FailedStart)] == [FailedStart("function_raised", COURSE)] * told
    died = lose(running(**options), 3.0, "container")
    assert [one for one in died if isinstance(one, FailedStart)] == [FailedStart("container_died", COURSE)] * told
    taken = running(**options).frame("n1", ended(Outcome.DIED, preempted=True), 3.0)
    assert kinds(taken) == ["Settle", "Enqueue"]


def test_a_call_that_is_left_tells_what_may_run_on() -> None:
    """By a cancel or the deadline, once it was sent; what waits has cost nothing."""
    for make in (sent, running):
        assert fail_of(make().cancel()).left == grant(1)
        assert fail_of(make().tick(60.0)).left == grant(1)
    waiting = queued()
    assert fail_of(waiting.cancel()).left is None
    assert (waiting.attempts.cost, waiting.attempts.starts) == (0.0, 0)
    assert fail_of(running().frame("n1", ended(Outcome.RAISED, spent=HALF_MS), 3.0)).left is None


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
    full = Dropped(call_id="a", gateway="gw1", code="queue_full", detail="full", retry_after=3.0)
    error = error_of(queued().dropped(full))
    assert isinstance(error, TooMuch)
    assert (error.wire_code, error.detail, error.retry_after) == ("queue_full", "full", 3.0)
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
