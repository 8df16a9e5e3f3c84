"""The meter of one container."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.call_messages import Outcome, ResumePoint
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.units import NS_PER_S
from pilotlight_runtime.metering.container_meter import ContainerMeter, WorkKey, WorkLog
from pilotlight_runtime.metering.meter import MeterMisuse, SliceMeter
from pilotlight_runtime.metering.metered_slice import MeteredSlice, SliceOwner
from tests.builders.calls import run
from tests.builders.specs import function_spec, manifest

ACME = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")


class MeteredContainer:
    """A container's meter with what it stands on, and a clock that is set."""

    def __init__(self) -> None:
        self.at_ns = 0
        slice_ = MeteredSlice(instance="i", node="n", device="cpu", slice="cpu-0", ppm=500_000, price="cpu")
        self.slice = SliceMeter(slice_, at_ns=0)
        self.work = WorkLog()
        key = WorkKey(container="c1", version="ver_1", slice="cpu-0")
        self.meter = ContainerMeter(self.slice, self.work, key, clock=lambda: self.at_ns)

    def events(self) -> list[tuple[LeaseState, str, int]]:
        found = self.slice.checkpoint(self.at_ns)
        return [(event.state, event.tenant, event.t1 - event.t0) for event in found]


def test_the_owner_pays_from_loading_to_the_release() -> None:
    """Before and after it is the operator's time."""
    container = MeteredContainer()
    container.at_ns = 10
    container.meter.owner = ACME
    container.meter.enter(LeaseState.LOADING)
    container.at_ns = 30
    container.meter.enter(LeaseState.IDLE)
    container.at_ns = 60
    container.meter.release()
    container.at_ns = 100

    assert container.events() == [
        (LeaseState.FREE, "", 10),
        (LeaseState.LOADING, "acme", 20),
        (LeaseState.IDLE, "acme", 30),
        (LeaseState.FREE, "", 40),
    ]


def test_a_slice_is_provisioned_for_nobody_until_its_owner_is_known() -> None:
    """Then for that one, and the time before stays the operator's."""
    container = MeteredContainer()
    container.meter.enter(LeaseState.PROVISIONING)
    container.at_ns = 10
    container.meter.owner = ACME
    container.meter.enter(LeaseState.PROVISIONING)
    container.at_ns = 30
    container.meter.enter(LeaseState.LOADING)
    container.at_ns = 60

    assert container.events() == [
        (LeaseState.PROVISIONING, "", 10),
        (LeaseState.PROVISIONING, "acme", 20),
        (LeaseState.LOADING, "acme", 30),
    ]


def test_no_owned_state_without_an_owner() -> None:
    """Until the manifest is verified nobody can be made to pay."""
    with pytest.raises(MeterMisuse):
        MeteredContainer().meter.enter(LeaseState.LOADING)


def test_a_call_gets_what_it_used() -> None:
    """At the clock's instants, with its batch size."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.at_ns = 100
    container.meter.call_started(run("a", tenant="caller"))
    container.at_ns = 350

    spent = container.meter.call_ended("a", Outcome.OK, 4)
    assert (spent.ns, spent.ppm, spent.batch_size) == (250, 500_000, 4)
    assert (LeaseState.BUSY, "acme", 250) in container.events()


def test_batches_are_recorded_under_the_container() -> None:
    """For the throughput curves of its version on its slice."""
    container = MeteredContainer()
    container.meter.record_batch(8, 12.5)

    [ran] = container.work.take()
    assert (ran.container, ran.version, ran.slice, ran.batch, ran.ms) == ("c1", "ver_1", "cpu-0", 8, (12.5,))


def test_the_interval_says_why_the_container_exists_and_whether_it_was_used() -> None:
    """What the controller told with the bind, the memory that it was promised, and from its first call on that it was
    used; nothing of it once the container has gone.
    """
    container = MeteredContainer()
    key = WorkKey(container="c1", version="ver_1", slice="cpu-0")
    meter = ContainerMeter(
        container.slice, container.work, key, purpose=Purpose.FLOOR, memory=2**31, core_ppm=5, gib_ppm=7,
        clock=lambda: container.at_ns,
    )  # fmt: skip
    meter.set_owner(
        manifest(function_spec("rank", tags={"stage": "live"}), tenant="acme", app="shop", function="rank"),
        "ver_1",
        "c1",
    )
    meter.enter(LeaseState.IDLE)
    container.at_ns = 100
    (idle,) = container.slice.checkpoint(100)
    meter.call_started(run("a", tenant="caller", key="key_1", tags={"team": "red"}))
    container.at_ns = 200
    spent = meter.call_ended("a", Outcome.OK, 1, {"prompt_tokens": 12})
    (busy,) = container.slice.checkpoint(200)
    meter.release()
    container.at_ns = 300
    (free,) = container.slice.checkpoint(300)

    assert (idle.function, idle.purpose, idle.memory, idle.used) == ("rank", Purpose.FLOOR, 2**31, False)
    assert (busy.purpose, busy.memory, busy.used) == (Purpose.FLOOR, 2**31, True)
    assert (free.purpose, free.memory, free.used) == (Purpose.CALL, 0, False)
    assert (idle.tags, busy.tags, free.tags) == ({"stage": "live"}, {"stage": "live"}, {})
    assert [(one.core_ppm, one.gib_ppm) for one in (idle, busy, spent, free)] == [(5, 7), (5, 7), (5, 7), (0, 0)]
    (share,) = busy.shares
    assert (share.key, share.tags, share.fault, share.units) == (
        "key_1", {"team": "red"}, Fault.NONE, {"prompt_tokens": 12},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [
        (Outcome.OK, Fault.NONE),
        (Outcome.CANCELLED, Fault.NONE),
        (Outcome.RAISED, Fault.TENANT),
        (Outcome.TIMEOUT, Fault.TENANT),
        (Outcome.DIED, Fault.TENANT),
    ],
)
def test_the_last_share_says_whose_fault_it_is(outcome: Outcome, fault: Fault) -> None:
    """A container that dies of itself dies of its code; one that the platform ends does not."""
    for of_death, expected in ((Fault.TENANT, fault), (Fault.PLATFORM, fault)):
        container = MeteredContainer()
        container.meter.owner = ACME
        container.meter.enter(LeaseState.IDLE)
        container.meter.fault_of_death = of_death
        container.meter.call_started(run("a"))
        container.meter.call_ended("a", outcome, 1)

        (busy,) = container.slice.checkpoint(5)[-1:]
        assert busy.shares[0].fault is (of_death if outcome is Outcome.DIED else expected)


def test_a_container_that_is_kept_by_a_guess_counts_as_unused() -> None:
    """Until its next call. Before its tenant is known, the reason is noted."""
    container = MeteredContainer()
    container.meter.keep(Purpose.MOVE)
    assert container.meter.is_guess
    container.meter.set_owner(manifest(function_spec()), "ver_1", "c1")
    container.meter.enter(LeaseState.IDLE)
    container.meter.call_started(run("call_1"))
    container.meter.call_ended("call_1", Outcome.OK, 1)

    said = [container.meter.is_guess]
    for purpose in (Purpose.PREWARM, Purpose.FLOOR):
        container.meter.keep(purpose)
        assert container.meter.owner.purpose is purpose
        said.append(container.meter.is_guess)
    assert said == [False, True, False]


def test_a_call_says_which_start_it_waited_for() -> None:
    """Once, in whole microseconds, where it ends."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.meter.call_started(run("cold", cold_ms=12.3456))
    container.meter.call_started(run("warm"))
    container.at_ns = 10
    begun = [share for event in container.slice.checkpoint(10) for share in event.shares]
    container.at_ns = 20
    for name in ("cold", "warm"):
        container.meter.call_ended(name, Outcome.OK, 1)
    over = [share for event in container.slice.checkpoint(20) for share in event.shares]

    assert [share.cold_us for share in begun] == [0, 0]
    assert {share.call_id: share.cold_us for share in over} == {"cold": 12_346, "warm": 0}


def test_an_item_of_a_split_batch_pays_for_its_own_run_alone() -> None:
    """What the batch took is the operator's, also what of it is metered already; each item waits unmetered."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    runs = [run("a", cold_ms=4.0), run("b")]
    for each in runs:
        container.meter.call_started(each)
    container.at_ns = 6
    events = container.slice.checkpoint(6)
    container.at_ns = 10
    container.meter.end_batch([(each.call_id, 2) for each in runs])
    spent = []
    for each in runs:
        container.meter.call_restarted(each)
        container.at_ns += 20
        spent.append(container.meter.call_ended(each.call_id, Outcome.OK, 1))
    events += container.slice.checkpoint(container.at_ns)

    shares = [share for event in events for share in event.shares]
    assert [(share.call_id, share.ns, share.earlier, share.ended, share.fault, share.cold_us) for share in shares] == [
        ("a", 3, 0, "", Fault.NONE, 0), ("b", 3, 0, "", Fault.NONE, 0),
        ("a", 2, 3, "split", Fault.PLATFORM, 4_000), ("b", 2, 3, "split", Fault.PLATFORM, 0),
        ("a", 20, 0, "ok", Fault.NONE, 0), ("b", 20, 0, "ok", Fault.NONE, 0),
    ]  # fmt: skip
    assert [(one.ns, one.fault) for one in spent] == [(20, Fault.NONE), (20, Fault.NONE)]


def test_batches_that_raise_after_long_work_are_free_once_alone() -> None:
    """A second one is billed beside its calls' own runs, as the first took an hour that these never made up for."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    faults = []
    for turn in range(3):
        names = [f"{turn}a", f"{turn}b"]
        for name in names:
            container.meter.call_started(run(name))
        container.at_ns += 3_600 * NS_PER_S
        container.meter.end_batch([(name, 2) for name in names])
        for name in names:
            container.meter.call_restarted(run(name))
            container.at_ns += 1_000_000 if turn < 1 else 1_800 * NS_PER_S
            container.meter.call_ended(name, Outcome.OK, 1)
        events = container.slice.checkpoint(container.at_ns)
        faults.append({share.fault for event in events for share in event.shares if share.ended == "split"})

    assert faults == [{Fault.PLATFORM}, {Fault.TENANT}, {Fault.PLATFORM}]  # the last after an hour of runs alone


def test_what_was_about_to_run_alone_and_did_not_is_charged_to_nobody() -> None:
    """Its caller cancelled it while it waited."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.meter.call_started(run("a"))
    container.at_ns = 10
    container.meter.end_batch([("a", 2)])
    container.meter.call_restarted(run("a"))
    container.meter.call_ended("a", Outcome.CANCELLED, 1, ran=False)

    shares = [share for event in container.slice.checkpoint(10) for share in event.shares]
    assert [(share.ended, share.fault) for share in shares] == [
        ("split", Fault.PLATFORM), ("cancelled", Fault.PLATFORM)
    ]  # fmt: skip


def test_a_shadow_is_nothing_that_its_tenant_pays() -> None:
    """Its share says so to the ledger, and what it took to its origin."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.meter.call_started(run("a", shadow=True))
    container.at_ns = 10
    spent = container.meter.call_ended("a", Outcome.OK, 1)

    (share,) = [share for event in container.slice.checkpoint(10) for share in event.shares]
    assert (share.shadow, share.fault, spent.fault) == (True, Fault.NONE, Fault.PLATFORM)


def test_what_a_stream_repeats_is_the_operators() -> None:
    """What follows is its tenant's, and counts as the rest of a start; one that died and goes on counts there."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    resumed = run("a", resume=ResumePoint(after=1, sent=2, resumed=True))
    container.meter.call_started(resumed)
    container.at_ns = 30
    container.meter.end_repeat(resumed)
    container.at_ns = 100
    spent = container.meter.call_ended("a", Outcome.DIED, 1, can_move=True)

    (event,) = [event for event in container.slice.checkpoint(100) if event.shares]
    assert [(share.ns, share.ended, share.fault, share.moved, share.resumed) for share in event.shares] == [
        (30, "repeated", Fault.PLATFORM, False, True),
        (70, "died", Fault.TENANT, True, True),
    ]
    assert (spent.ns, spent.resumed) == (70, True)


def test_what_a_moved_stream_has_kept_is_its_tenants() -> None:
    """Though the platform ended its container: it goes on from there. What is done again is paid where it is done."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.meter.fault_of_death = Fault.PLATFORM
    container.meter.call_started(run("a"))
    container.at_ns = 60
    container.meter.keep_work(["a"])
    container.at_ns = 100
    moved = container.meter.call_ended("a", Outcome.DIED, 1, can_move=True)
    for call in ("b", "c"):
        container.meter.call_started(run(call))
    container.at_ns = 200
    lost, vain = (container.meter.call_ended(call, Outcome.DIED, 1, can_move=call == "c") for call in ("b", "c"))

    assert (moved.fault, lost.fault, vain.fault) == (Fault.NONE, Fault.PLATFORM, Fault.PLATFORM)
    assert moved.ns == 60
    shares = [share for event in container.slice.checkpoint(200) for share in event.shares if share.call_id == "a"]
    assert [(share.ns, share.fault) for share in shares] == [(60, Fault.NONE), (40, Fault.PLATFORM)]


def test_a_function_that_ends_its_container_pays_for_all_that_it_did() -> None:
    """What a stream does again is paid twice then: it could work for nothing otherwise."""
    container = MeteredContainer()
    container.meter.owner = ACME
    container.meter.enter(LeaseState.IDLE)
    container.meter.call_started(run("a"))
    container.at_ns = 60
    container.meter.keep_work(["a"])
    container.at_ns = 100
    spent = container.meter.call_ended("a", Outcome.DIED, 1, can_move=True)

    assert (spent.ns, spent.fault) == (100, Fault.NONE)
