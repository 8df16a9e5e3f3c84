"""The meter: every nanosecond of every slice is somebody's, once."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_runtime.metering.meter import MAX_SHARES, MeterMisuse, SliceMeter
from pilotlight_runtime.metering.metered_slice import OPERATOR, MeteredSlice, SliceOwner
from tests.example_counts import examples

LEASE = MeteredSlice(instance="i1", node="n1", device="gpu0", slice="gpu0-a", ppm=250_000, price="h100")
ACME = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")


def idle_meter(at_ns: int = 0) -> SliceMeter:
    """A meter whose slice is warm and waits."""
    meter = SliceMeter(LEASE, at_ns=at_ns)
    meter.transition(LeaseState.IDLE, at_ns, ACME)
    return meter


def shares_of(events: list[UsageEvent], call: str) -> int:
    """What all events give to a call."""
    return sum(share.ns for event in events for share in event.shares if share.call_id == call)


def test_states_follow_each_other_without_gap() -> None:
    """Each transition closes an interval, and the next begins where it ended."""
    meter = SliceMeter(LEASE, at_ns=100)
    meter.transition(LeaseState.BLANK, 150)
    meter.transition(LeaseState.LOADING, 180, ACME)
    meter.transition(LeaseState.IDLE, 250, ACME)
    events = meter.checkpoint(300)

    assert [(event.state.value, event.t0, event.t1, event.tenant) for event in events] == [
        ("free", 100, 150, ""),
        ("blank", 150, 180, ""),
        ("loading", 180, 250, "acme"),
        ("idle", 250, 300, "acme"),
    ]


def test_event_ids_are_deterministic_and_rise() -> None:
    """The id is the incarnation, the slice and a number, so that a repeated event counts once."""
    meter = SliceMeter(LEASE, at_ns=0)
    ids = [event.id for at in (10, 20, 30) for event in meter.checkpoint(at)]

    assert ids == ["i1.gpu0-a.1", "i1.gpu0-a.2", "i1.gpu0-a.3"]


def test_a_call_pays_for_its_own_time() -> None:
    """One call alone gets all the busy time, and its receipt says so."""
    meter = idle_meter()
    meter.call_started("a", "acme", 10)
    spent = meter.call_ended("a", "ok", 35)
    events = meter.checkpoint(50)

    assert (spent.ns, spent.ppm, spent.price, spent.batch_size) == (25, 250_000, "h100", 1)
    assert [(event.state.value, event.t1 - event.t0) for event in events] == [("idle", 25), ("busy", 25)]
    assert [(share.call_id, share.tenant, share.ns, share.ended) for share in events[1].shares] == [
        ("a", "acme", 25, "ok")
    ]


def test_overlapping_calls_share_what_they_overlap() -> None:
    """Three calls of a batch in 100 ns get 34, 33 and 33: nothing is lost and nothing counts twice."""
    meter = idle_meter()
    for call in "abc":
        meter.call_started(call, "acme", 0)
    spent = [meter.call_ended(call, "ok", 100, batch_size=3) for call in "abc"]

    assert sorted(part.ns for part in spent) == [33, 33, 34]
    assert {part.batch_size for part in spent} == {3}


def test_a_long_call_is_billed_each_second_and_once() -> None:
    """Checkpoints bill the call so far; the receipt is the sum, and only the last share has an outcome."""
    meter = idle_meter()
    meter.call_started("a", "acme", 0)
    events = [event for at in (10, 20, 30) for event in meter.checkpoint(at)]
    spent = meter.call_ended("a", "raised", 37)
    events += meter.checkpoint(40)

    assert spent.ns == 37 == shares_of(events, "a")
    assert [share.ended for event in events for share in event.shares] == ["", "", "", "raised"]


@pytest.mark.parametrize(("kept_at", "paid", "parts", "given_back"), [
    (0, 0, [(7, Fault.PLATFORM)], 30),  # nothing: all of it is the operator's
    (12, 12, [(0, Fault.NONE), (7, Fault.PLATFORM)], 18),
    (33, 33, [(3, Fault.NONE), (4, Fault.PLATFORM)], 0),
    (37, 37, [(7, Fault.NONE)], 0),
])  # fmt: skip
def test_of_a_stream_that_is_lost_what_it_has_kept_is_paid(
    kept_at: int, paid: int, parts: list[tuple[int, Fault]], given_back: int
) -> None:
    """What it did since is done again elsewhere: the operator's, also what of it was billed each second."""
    meter = idle_meter()
    meter.call_started("a", "acme", 0)
    events = []
    for at in range(1, 38):
        if at == kept_at:
            meter.keep_work(["a"], at)
        if at % 10 == 0:
            events += meter.checkpoint(at)
    spent = meter.call_ended("a", "died", 37, moved=True, is_lost=True)
    events += meter.checkpoint(40)

    ended = [share for event in events for share in event.shares if share.ended]
    assert [(share.ns, share.fault) for share in ended] == parts
    assert all(share.moved for share in ended)
    assert sum(share.earlier for share in ended if share.fault is Fault.PLATFORM) == given_back
    tenants = sum(share.ns for event in events for share in event.shares if share.fault is not Fault.PLATFORM)
    assert tenants - given_back == paid
    assert (spent.ns, spent.fault) == ((paid, Fault.NONE) if paid else (37, Fault.PLATFORM))
    assert sum(share.ns + share.earlier for share in ended) == 37
    meter.check_integrity()


def test_only_a_call_that_runs_keeps_what_it_did() -> None:
    """Whoever asks for another has made a mistake."""
    with pytest.raises(MeterMisuse):
        idle_meter().keep_work(["a"], 1)


def test_many_short_calls_make_two_events() -> None:
    """A window that was busy a hundred times costs two events, not two hundred."""
    meter = idle_meter()
    for n in range(100):
        meter.call_started(f"c{n}", "acme", n * 10)
        meter.call_ended(f"c{n}", "ok", n * 10 + 7)
    events = meter.checkpoint(1_000)

    assert [(event.state.value, event.t0, event.t1) for event in events] == [("idle", 0, 300), ("busy", 300, 1_000)]
    assert len(events[1].shares) == 100


def test_shares_of_an_event_are_bounded() -> None:
    """More calls than one event may list go into several, each exact, which follow each other."""
    meter = idle_meter()
    for n in range(2 * MAX_SHARES + 5):
        meter.call_started(f"c{n}", "acme", n)
    events = meter.checkpoint(1_000_003)
    busy = [event for event in events if event.state is LeaseState.BUSY]

    assert all(len(event.shares) <= MAX_SHARES for event in events)
    assert all(sum(share.ns for share in event.shares) == event.t1 - event.t0 for event in busy)
    assert [event.t1 for event in busy[:-1]] == [event.t0 for event in busy[1:]]
    assert sum(event.t1 - event.t0 for event in events) == 1_000_003


def test_ended_calls_do_not_pile_up() -> None:
    """A thousand ended calls close the window, even if nobody asks for a checkpoint."""
    meter = idle_meter()
    for n in range(3 * MAX_SHARES):
        meter.call_started(f"c{n}", "acme", n * 2)
        meter.call_ended(f"c{n}", "ok", n * 2 + 1)
    events = meter.checkpoint(6 * MAX_SHARES)

    assert sum(len(event.shares) for event in events) == 3 * MAX_SHARES
    assert max(len(event.shares) for event in events) == MAX_SHARES


def test_a_lost_container_ends_its_calls() -> None:
    """When the slice goes to the operator, calls that still ran have died, and have paid until then."""
    meter = idle_meter()
    meter.call_started("a", "acme", 10)
    meter.transition(LeaseState.FREE, 30)
    events = meter.checkpoint(40)

    assert [(event.state.value, event.t1 - event.t0) for event in events] == [("idle", 10), ("busy", 20), ("free", 10)]
    assert events[1].shares[0].ended == "died"


def test_draining_goes_on_with_its_calls() -> None:
    """A draining slice is busy while its calls run, and draining after them."""
    meter = idle_meter()
    meter.call_started("a", "acme", 10)
    meter.transition(LeaseState.DRAINING, 20, ACME)
    spent = meter.call_ended("a", "ok", 50)
    events = meter.checkpoint(60)

    assert spent.ns == 40 == shares_of(events, "a")
    assert [(event.state.value, event.t0, event.t1) for event in events] == [
        ("idle", 0, 10),
        ("busy", 10, 20),
        ("draining", 20, 30),
        ("busy", 30, 60),
    ]


def test_an_instant_of_the_past_counts_as_now() -> None:
    """Two clocks readings that arrive in the wrong order make no negative time."""
    meter = idle_meter()
    meter.call_started("a", "acme", 100)

    assert meter.call_ended("a", "ok", 90).ns == 0
    meter.check_integrity()


def test_wall_time_is_that_of_the_end() -> None:
    """Reports get unix seconds at t1."""
    meter = SliceMeter(LEASE, at_ns=0, wall_offset_ns=1_790_035_200_000_000_001)

    (event,) = meter.checkpoint(2_500_000_000)
    assert event.ended_at == 1_790_035_202.5
    assert event.wall_ns == 1_790_035_202_500_000_001


def test_a_share_keeps_its_key_over_checkpoints() -> None:
    """Each part of a call says whose it is; what ended it and its units are in the last."""
    meter = idle_meter()
    meter.call_started("a", "acme", 100, key="key_1", tags={"team": "red"})
    parts = [share for event in meter.checkpoint(200) for share in event.shares]
    meter.call_ended("a", "raised", 300, fault=Fault.TENANT, units={"images": 1})
    parts += [share for event in meter.checkpoint(300) for share in event.shares]

    assert [(part.key, part.tags, part.fault, part.units) for part in parts] == [
        ("key_1", {"team": "red"}, Fault.NONE, {}), ("key_1", {"team": "red"}, Fault.TENANT, {"images": 1}),
    ]  # fmt: skip


def test_what_the_platform_ended_tells_what_it_was_billed() -> None:
    """In earlier intervals, to be given back; the caller is told that nothing of it is to be paid."""
    meter = idle_meter()
    meter.call_started("a", "acme", 100)
    meter.call_started("b", "acme", 100)
    meter.checkpoint(300)
    spent = meter.call_ended("a", "died", 340, fault=Fault.PLATFORM)
    other = meter.call_ended("b", "raised", 340, fault=Fault.TENANT)

    shares = [share for event in meter.checkpoint(400) for share in event.shares]
    assert [(share.call_id, share.ns, share.earlier) for share in shares] == [("a", 20, 100), ("b", 20, 100)]
    assert (spent.ns, spent.fault, other.fault) == (120, Fault.PLATFORM, Fault.NONE)


def test_misuse_is_refused() -> None:
    """What cannot be is told at once, and changes nothing."""
    meter = SliceMeter(LEASE, at_ns=0)
    with pytest.raises(MeterMisuse):
        meter.call_started("a", "acme", 5)
    with pytest.raises(MeterMisuse):
        meter.transition(LeaseState.BUSY, 5, ACME)
    with pytest.raises(MeterMisuse):
        meter.transition(LeaseState.IDLE, 5)
    with pytest.raises(MeterMisuse):
        meter.call_ended("a", "ok", 5)
    assert meter.state is LeaseState.FREE


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "end", "checkpoint", "provisioning", "loading", "idle", "draining", "free", "blank"]),
        st.integers(0, 50),
        st.integers(0, 30),
    ),
    max_size=60,
)
OPERATORS = {"free", "blank"}


class Story:
    """A meter that is told any sequence of steps, with the shares that fractions would give."""

    def __init__(self) -> None:
        self.meter = SliceMeter(LEASE, at_ns=1_000)
        self.now = 1_000
        self.events: list[UsageEvent] = []
        self.receipts: dict[str, int] = {}
        self.ideal: dict[str, Fraction] = defaultdict(Fraction)
        self.running: list[str] = []
        self.owned = False
        self.number = 0
        self.steps = 0

    def tell(self, what: str, which: int, passed: int) -> None:
        for call in self.running:
            self.ideal[call] += Fraction(passed, len(self.running))
        self.now += passed
        self.steps += 1
        if what == "start":
            self.start()
        elif what == "end":
            self.end(which)
        elif what == "checkpoint":
            self.events += self.meter.checkpoint(self.now)
        else:
            self.change(what)
        self.meter.check_integrity()

    def start(self) -> None:
        if self.owned:
            self.number += 1
            self.running.append(f"c{self.number}")
            self.meter.call_started(f"c{self.number}", "acme", self.now)

    def end(self, which: int) -> None:
        if self.running:
            call = self.running.pop(which % len(self.running))
            self.receipts[call] = self.meter.call_ended(call, "ok", self.now).ns

    def change(self, state: str) -> None:
        self.owned = state not in OPERATORS
        if not self.owned:
            self.running.clear()
        self.meter.transition(LeaseState(state), self.now, ACME if self.owned else OPERATOR)


@examples(300)
@given(STEPS)
def test_every_nanosecond_is_counted_once(steps: list[tuple[str, int, int]]) -> None:
    """Whatever happens: intervals follow each other, splits are exact, receipts are sums, and shares are fair."""
    story = Story()
    for step in steps:
        story.tell(*step)
    events = story.events + story.meter.checkpoint(story.now)

    edges = [1_000] + [event.t1 for event in events]
    assert [event.t0 for event in events] == edges[:-1]
    assert edges[-1] == story.now
    for event in events:
        assert sum(share.ns for share in event.shares) == (event.t1 - event.t0 if event.shares else 0)
        assert bool(event.shares) is (event.state is LeaseState.BUSY)
        assert bool(event.tenant) is (event.state.value not in OPERATORS)
    for call, ns in story.receipts.items():
        assert ns == shares_of(events, call)
    for call, ideal in story.ideal.items():
        assert abs(shares_of(events, call) - ideal) <= story.steps + 1
    assert len({event.id for event in events}) == len(events)


def test_what_a_container_is_there_for_may_change() -> None:
    """From that instant on it counts as unused, but for a call that runs; another container's meter stays as it is."""
    meter = idle_meter()
    meter.call_started("call_1", "bob", 10)
    meter.call_ended("call_1", "ok", 20)
    guess = msgspec.structs.replace(ACME, purpose=Purpose.PREWARM)
    meter.keep(guess, 50)
    assert not meter.used
    meter.keep(msgspec.structs.replace(guess, container="c2", purpose=Purpose.FLOOR), 60)
    meter.call_started("call_2", "bob", 80)
    meter.keep(guess, 90)
    events = meter.checkpoint(100)

    meter.check_integrity()
    assert [(event.state.value, event.t1 - event.t0, event.purpose.value, event.used) for event in events] == [
        ("idle", 40, "call", True),
        ("busy", 10, "call", True),
        ("idle", 30, "prewarm", True),
        ("busy", 10, "prewarm", True),
        ("busy", 10, "prewarm", True),
    ]


def test_a_guess_stays_one_while_shadows_run_in_it() -> None:
    """Nobody has asked for them: what the container does beside them is the operator's too."""
    guess = msgspec.structs.replace(ACME, purpose=Purpose.PREWARM)
    meter = idle_meter()
    meter.keep(guess, 5)
    meter.call_started("call_1", "bob", 10, shadow=True)
    meter.keep(msgspec.structs.replace(guess, purpose=Purpose.MOVE), 15)
    spent = meter.call_ended("call_1", "ok", 20)
    assert not meter.used
    events = meter.checkpoint(30)
    assert [share.shadow for event in events for share in event.shares] == [True, True]
    assert not any(event.used for event in events if event.purpose is not Purpose.CALL)
    assert spent.fault is Fault.PLATFORM
    meter.call_started("call_2", "bob", 40)
    assert meter.used
