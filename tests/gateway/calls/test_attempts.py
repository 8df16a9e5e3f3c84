"""How often a call was tried, what that took, and where its time went."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import (
    Ended,
    Outcome,
    Spent,
    Stages,
    lack_ns,
)
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.tracing.kept_call import LONGEST_REASON, MOST_ATTEMPTS
from pilotlight_gateway.calls.attempts import Attempts, course_of
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import FailCall
from tests.builders.calls import grant
from tests.builders.specs import function_spec
from tests.gateway.calls.origin_steps import (
    HALF_MS,
    ended,
    fail_of,
    lose,
    queued,
    running,
)

ms = st.floats(0.0, 1e4)


@given(
    laps=st.lists(
        st.tuples(st.sampled_from(["granted", "refused", "lost", "ended"]), st.floats(-1.0, 10.0), ms, ms), max_size=12
    )
)
def test_the_stages_always_sum_to_the_time_that_passed(laps: list[tuple[str, float, float, float]]) -> None:
    """Whatever the agents report, over any number of attempts, and even if a clock is set back."""
    attempts = Attempts(100.0)
    at = latest = 100.0
    for kind, step, first, second in laps:
        at += step
        latest = max(at, latest)
        if kind == "granted":
            attempts.granted(grant(1, start_ms=first), at)
        elif kind == "refused":
            attempts.refused(grant(1), "gone", at)
        elif kind == "lost":
            attempts.lost(grant(1), "gone", at)
        else:
            attempts.ended(grant(1), ended(stages=Stages(batch_wait_ms=first, execute_ms=second)), at)
    stages = attempts.result(ended(), grant(1), 7.0, function_spec()).stages
    assert sum(stages.values()) == pytest.approx(7.0 + (latest - 100.0) * 1000.0, abs=1e-3)
    assert min(stages.values()) >= 0.0


def test_no_more_units_are_sold_than_a_function_names() -> None:
    """All that it counted is told; of what it names no most for, nothing is sold."""
    attempts, counted = Attempts(0.0), {"prompt_tokens": 50, "images": 7, "custom": 3}
    naming = function_spec(max_units={"prompt_tokens": 40, "custom": 9})
    result = attempts.result(ended(units=counted), grant(1), 0.0, naming)
    assert (result.units, result.sold) == (counted, {"prompt_tokens": 40, "custom": 3})
    assert not attempts.result(ended(units=counted), grant(1), 0.0, function_spec()).sold


def test_a_call_has_its_place_in_its_container() -> None:
    """That of its last start, also where it fails; 0: it has none, or its agent does not say."""
    attempts = Attempts(0.0)
    attempts.granted(grant(1), 1.0)
    attempts.ended(grant(1), ended(Outcome.RAISED, nth=7, batch=2), 2.0)
    failed, done = course_of([attempts], 2.0, 0.0, sent=True), attempts.result(ended(), grant(1), 0.0, function_spec())
    assert [(each.nth, each.batch) for each in (failed, done)] == [(7, 2), (7, 2)]
    attempts.granted(grant(2), 3.0)
    assert course_of([attempts], 4.0, 0.0, sent=True).nth == 0


def test_a_start_that_was_waited_for_is_shown_apart_from_the_queue() -> None:
    """Two of three seconds in the queue were a cold start."""
    origin = queued()
    origin.granted(grant(1, start_ms=2_000.0, timeline={"load": 1_900.0}), 3.0)
    (_, finish) = origin.frame("n1", ended(), 3.5)
    assert isinstance(finish, CallResult)
    assert (finish.stages["queue"], finish.stages["start"]) == pytest.approx((1_000.0, 2_000.0))
    assert finish.cold_start == {"load": 1_900.0}


def test_attempts_count_every_start() -> None:
    """The answer says how often it took."""
    origin = running(idempotent=True)
    lose(origin, 3.0, "node")
    origin.granted(grant(2), 4.0)
    (_, finish) = origin.frame("n1", ended(number=2, stages=Stages(execute_ms=500.0)), 5.0)
    assert isinstance(finish, CallResult)
    assert finish.attempts == 2
    assert sum(finish.stages.values()) == pytest.approx(5_000.0)


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
        assert (origin.attempts.cost, origin.attempts.lost_starts) == (1.0, 0)
        if isinstance(last, CallResult):
            assert last.spent == Spent(ns=2_000_000, ppm=500_000, price="h100", starts=(1_000_000, 1_000_000))


def test_the_rest_of_a_stream_is_no_start_of_its_own() -> None:
    """Its time is added, and it does not lack of the least that a start is billed for."""
    attempts = Attempts(0.0)
    first, rest = (Spent(ns=ns, ppm=1_000_000, price="h100", resumed=ns == 5) for ns in (3, 5))
    attempts.ended(grant(1), ended(Outcome.DIED, spent=first), 1.0)
    attempts.ended(grant(2), ended(spent=rest), 2.0)

    assert attempts.spent == Spent(ns=8, ppm=1_000_000, price="h100", starts=(3,))
    assert (lack_ns(attempts.spent, 10), lack_ns(rest, 10)) == (7, 0)


def test_starts_that_paid_for_other_parts_of_the_host_stand_apart() -> None:
    """As those on slices of several kinds: each has a line of its own."""
    origin = running(retries=1)
    origin.frame("n1", ended(Outcome.RAISED, spent=HALF_MS), 3.0)
    origin.tick(4.0)
    origin.granted(grant(2), 5.0)
    dearer = msgspec.structs.replace(HALF_MS, core_ppm=5)

    last = origin.frame("n1", ended(Outcome.OK, number=2, spent=dearer), 6.0)[-1]

    assert isinstance(last, CallResult)
    assert (last.spent, last.spent_before) == (dearer, (HALF_MS,))


def test_what_the_platform_ended_is_not_on_the_receipt() -> None:
    """It still counts under limits."""
    origin = running(idempotent=True, retries=1)
    ours = msgspec.structs.replace(HALF_MS, fault=Fault.PLATFORM)
    origin.frame("n1", ended(Outcome.DIED, spent=ours), 3.0)
    origin.tick(4.0)
    origin.granted(grant(2), 5.0)

    last = origin.frame("n1", ended(Outcome.OK, number=2, spent=HALF_MS), 6.0)[-1]

    assert isinstance(last, CallResult)
    assert (last.spent, last.spent_before, origin.attempts.cost) == (HALF_MS, (), 1.0)


def test_what_a_start_cost_whose_time_cannot_be_is_not_known() -> None:
    """It ran all the same: its money is not settled as if it had cost nothing."""
    origin = running()
    day = Spent(ns=86_400 * 10**9, ppm=500_000, price="h100")
    last = origin.frame("n1", ended(Outcome.OK, spent=day), 6.0)[-1]

    assert isinstance(last, CallResult)
    assert (last.spent, origin.attempts.starts, origin.attempts.lost_starts) == (None, 1, 1)


def test_what_nobody_can_tell_is_lost() -> None:
    """A start that is given up with its node, and one that its agent knows nothing of."""
    origin = running()
    failed = fail_of(origin.node_gone("n1", "i1", "gone", 3.0))
    assert (origin.attempts.cost, origin.attempts.starts, origin.attempts.lost_starts, failed.left) == (0.0, 1, 1, None)

    origin = running()
    unknown = Ended(call_id="a", grant_number=1, container="", outcome=Outcome.DIED)
    fail_of(origin.frame("n1", unknown, 3.0))
    assert (origin.attempts.cost, origin.attempts.starts, origin.attempts.lost_starts) == (0.0, 1, 1)


def test_what_became_of_each_attempt_is_noted() -> None:
    """One that was refused, one that was lost, one that raised: each with its own time, and how many were ahead."""
    attempts = Attempts(0.0)
    attempts.granted(grant(1, ahead=4), 1.0)
    attempts.refused(grant(1, ahead=4), "no_slot", 1.5)
    attempts.granted(grant(2, container="c2"), 2.0)
    attempts.lost(grant(2, container="c2"), "its node was silent", 4.0)
    attempts.granted(grant(3), 4.5)
    attempts.ended(grant(3), ended(Outcome.RAISED, number=3, stages=Stages(execute_ms=1_000.0), reason="x" * 999), 6.0)

    told = [
        (one.outcome, one.container, one.started, one.ahead, one.queue, one.transport, one.execute)
        for one in attempts.trail
    ]
    assert told == [
        ("no_slot", "c1", False, 4, 1_000.0, 500.0, 0.0),
        ("lost", "c2", True, 0, 500.0, 0.0, 2_000.0),
        ("raised", "c1", True, 0, 500.0, 500.0, 1_000.0),
    ]
    assert [len(one.reason) for one in attempts.trail] == [0, 19, LONGEST_REASON]


def test_the_calls_of_its_batch_belong_to_the_attempt_that_ran_with_them() -> None:
    attempts = Attempts(0.0)
    attempts.granted(grant(1), 1.0)
    attempts.ended(grant(1), ended(Outcome.DIED, mates=("one",)), 2.0)
    attempts.granted(grant(2), 3.0)
    last, _ = attempts.ended(grant(2), ended(Outcome.OK, number=2, mates=("two",)), 4.0)
    assert [one.mates for one in attempts.trail] == [("one",)]
    assert attempts.result(last, grant(2), 0.0, function_spec("f")).mates == ("two",)


def test_few_attempts_are_noted() -> None:
    """A call has no more; and what is kept of it is bounded whatever becomes of that."""
    attempts = Attempts(0.0)
    for number in range(100):
        attempts.refused(grant(number), "gone", float(number))
    assert len(attempts.trail) == MOST_ATTEMPTS - 1
