"""What a home knows of a flow of jobs: who is next, who waits, and which messages are done."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.job_messages import JobNote
from pilotlight_gateway.jobs.job_flow import READ_AHEAD, JobFlow, PlannedJobs


def notes(*names: str, run_at: float = 0.0) -> list[JobNote]:
    return [JobNote(name, run_at) for name in names]


def planned(name: str, run_at: float, version: str = "") -> list[JobNote]:
    return [JobNote(name, run_at, "acme:shop.greet", version)]


def flow(*messages: list[JobNote]) -> JobFlow:
    made = JobFlow("jobs.local.1.x.acme.standard")
    for seq, message in enumerate(messages, 1):
        made.add(seq, message)
    return made


def test_jobs_are_taken_in_the_order_in_which_they_were_told() -> None:
    """Each once, until it is given back."""
    told = flow(notes("a", "b"), notes("c"))
    assert [told.take(0.0) for _ in range(4)] == ["a", "b", "c", None]


def test_a_job_that_waits_for_its_time_lets_others_pass() -> None:
    """It is due when it says; what was put off comes behind what was there already."""
    told = flow(notes("later", run_at=10.0), notes("now"))
    assert told.take(5.0) == "now"
    assert told.take(5.0) is None
    assert told.due_at() == 10.0
    assert told.take(10.0) == "later"
    told.put_off("later", 20.0)
    assert told.take(19.0) is None
    assert told.take(20.0) == "later"


def test_done_messages_go_up_to_the_first_that_is_not() -> None:
    """Those behind it are removed one by one: a job of next week keeps nobody's message."""
    told = flow(notes("a"), notes("b"), notes("c"))
    for _ in range(3):
        told.take(0.0)
    told.remove("c")
    told.remove("a")
    assert told.purge_below() == 2
    assert told.purge_below() == 0
    assert told.strays() == [3]
    assert told.strays() == []
    told.remove("b")
    assert told.purge_below() == 4
    assert not told


def test_a_job_that_is_told_twice_is_one_job() -> None:
    """Both its messages are done when it is over."""
    told = flow(notes("a"), notes("a", "a"))
    assert [told.take(0.0), told.take(0.0)] == ["a", None]
    told.remove("a")
    assert told.purge_below() == 3


def test_a_message_without_jobs_is_done() -> None:
    """What could not be read is removed too."""
    told = flow([], notes("a"))
    assert told.purge_below() == 2


def test_a_job_knows_its_place() -> None:
    """How many are before it, running ones among them; of others nothing is known."""
    told = flow(notes("a", "b", "c"))
    told.take(0.0)
    assert [told.position(name) for name in ("a", "b", "c", "d")] == [0, 1, 2, None]
    told.put_off("a", 5.0)
    assert [told.position(name) for name in ("a", "b", "c")] == [2, 0, 1]


def test_it_reads_only_so_far_ahead() -> None:
    """A backlog of a million is not held in memory."""
    told = flow([JobNote(str(number)) for number in range(READ_AHEAD)])
    assert not told.wants
    name = told.take(0.0)
    assert name is not None
    told.remove(name)
    assert told.wants


@given(st.lists(st.tuples(st.sampled_from(["tell", "take", "later", "over"]), st.integers(0, 9)), max_size=80))
def test_nothing_is_lost_and_nothing_is_removed_too_early(history: list[tuple[str, int]]) -> None:
    """A message goes only when all its jobs are over, and in the end all of them are gone."""
    told, at, seq = JobFlow("x"), 0.0, 0
    wanted: dict[int, set[str]] = {}
    taken: set[str] = set()

    def remove(name: str) -> None:
        told.remove(name)
        for names in wanted.values():
            names.discard(name)
        below = told.purge_below()
        for gone in [one for one in wanted if one < below] + told.strays():
            assert not wanted.pop(gone, set())

    for what, number in history:
        at += 1.0
        if what == "tell":
            seq += 1
            wanted[seq] = {str(number), str(number + 1)}
            told.add(seq, notes(*wanted[seq]))
        elif what == "take" and (name := told.take(at)) is not None:
            assert name not in taken
            taken.add(name)
        elif taken and what == "later":
            told.put_off(taken.pop(), at + number)
        elif taken and what == "over":
            remove(taken.pop())
        places = [place for name in range(11) if (place := told.position(str(name))) is not None]
        assert sorted(places) == list(range(len(told)))
    while taken or told:
        at += 100.0
        found = taken.pop() if taken else told.take(at)
        assert found is not None
        remove(found)
    assert not wanted


def test_the_backlog_is_what_could_begin_and_is_not_taken() -> None:
    """Not what waits for its time; what is given back waits again."""
    told = flow(notes("a", "b", "c"), notes("later", run_at=10.0))
    assert told.backlog(0.0) == 3
    assert told.take(0.0) == "a"
    assert (told.backlog(0.0), told.backlog(10.0)) == (2, 3)
    told.give_back("a")
    assert told.backlog(10.0) == 4
    for _ in range(4):
        told.take(10.0)
    assert told.backlog(10.0) == 0


def test_jobs_that_wait_for_their_time_are_planned() -> None:
    """Those that become due about when the first one does; none that could begin, or of a later time."""
    told = flow(notes("now"), [*planned("b", 10.0), *planned("c", 15.0)])
    assert told.function == "acme:shop.greet"
    assert told.planned(0.0, 5.0, 60.0) is None
    assert told.planned(0.0, 10.0, 4.0) == PlannedJobs(due_at=10.0, jobs=1)
    assert told.planned(0.0, 10.0, 5.0) == PlannedJobs(due_at=10.0, jobs=2)
    assert told.planned(10.0, 20.0, 5.0) == PlannedJobs(due_at=15.0, jobs=1)
    assert told.planned(15.0, 99.0, 60.0) is None


def test_what_is_looked_at_again_later_is_not_planned() -> None:
    """It runs elsewhere, or a limit holds it: no container is due to it then."""
    told = flow(planned("a", 10.0))
    assert told.take(10.0) == "a"
    told.put_off("a", 11.0)
    assert told.planned(10.5, 99.0, 60.0) is None
    assert told.due_at() == 11.0


def test_a_job_that_is_told_of_again_to_begin_is_looked_at_at_once() -> None:
    """It was cancelled: whoever would run it reads that, and it is planned no more."""
    told = flow(planned("a", 10.0), notes("a"))
    assert told.planned(0.0, 99.0, 60.0) is None
    assert told.take(0.0) == "a"
    told.remove("a")
    assert (len(told), told.purge_below(), told.take(10.0)) == (0, 3, None)


def test_jobs_are_planned_for_the_version_of_the_first() -> None:
    """Others ask for containers of another."""
    told = flow([*planned("a", 10.0, "ver_1"), *planned("b", 10.0, "ver_2"), *planned("c", 11.0, "ver_1")])
    assert told.planned(0.0, 99.0, 60.0) == PlannedJobs(due_at=10.0, jobs=2, version="ver_1")


@given(st.lists(st.integers(1, 40), max_size=60), st.integers(0, 40), st.integers(0, 20))
def test_planned_jobs_are_counted_by_the_heap(instants: list[int], at: int, within: int) -> None:
    """As by looking at each."""
    told = flow([each for number, run_at in enumerate(instants) for each in planned(f"job{number}", float(run_at))])
    left = [run_at for run_at in instants if run_at > at]
    found = told.planned(float(at), 99.0, float(within))
    if not left:
        assert found is None
    else:
        near = sum(run_at <= min(left) + within for run_at in left)
        assert found == PlannedJobs(due_at=float(min(left)), jobs=near)


def test_planned_jobs_of_two_flows_join_where_they_are_near() -> None:
    """Whichever is first."""
    early, late = PlannedJobs(due_at=10.0, jobs=2), PlannedJobs(due_at=70.0, jobs=3)
    assert early.joined(late, 60.0) == late.joined(early, 60.0) == PlannedJobs(due_at=10.0, jobs=5)
    assert late.joined(early, 59.0) == early
    assert early.joined(PlannedJobs(due_at=10.0, jobs=3, version="ver_1"), 60.0) == early
