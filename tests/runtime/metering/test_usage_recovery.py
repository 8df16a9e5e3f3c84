"""What a killed agent had told callers of is billed by the next one: exactly, and nothing twice."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.metering.device_meter import DeviceMeter, MeteredDevice
from pilotlight_runtime.metering.ended_shares import EndedShares, shares_in
from pilotlight_runtime.metering.meter import MAX_SHARES, MeterMisuse
from pilotlight_runtime.metering.metered_slice import SliceOwner
from pilotlight_runtime.metering.usage_log import UsageLog, UsageRecord
from pilotlight_runtime.metering.usage_metering import by_tenant
from pilotlight_runtime.metering.usage_recovery import recovered_usage
from tests.example_counts import examples
from tests.runtime.metering.ended import ACME, ended_share

RIVAL = SliceOwner(tenant="rival", app="a", function="f", version="v2", container="c2")


def events_of(records: list[UsageRecord]) -> list[UsageEvent]:
    """All of them, in the order of their beginnings."""
    return sorted((event for record in records for event in record.events), key=lambda event: (event.t0, event.slice))


def line(event: UsageEvent) -> tuple[str, int, int, int, str]:
    return event.slice, event.ppm, event.t0, event.t1, event.tenant


def test_nothing_left_behind_is_no_record() -> None:
    """Nor is what the log has."""
    assert recovered_usage([], {"cpu": 5}) == []
    assert recovered_usage([ended_share("call", ns=3, ended_ns=900)], {"cpu": 900}) == []


def test_ended_calls_are_busy_time_and_the_rest_is_the_operators() -> None:
    """The whole device is metered, from the end of its records to the last end of a call."""
    owner = msgspec.structs.replace(ACME, tags={"team": "search"})
    notes = [
        ended_share("b", ns=20, ended_ns=180, owner=owner),
        ended_share("a", ns=30, ended_ns=150, checkpoint_ns=100, owner=owner),
    ]

    records = recovered_usage(notes, {"cpu": 100})

    assert [line(event) for event in events_of(records)] == [
        ("cpu.rest", WHOLE_DEVICE, 100, 130, ""),
        ("cpu-0", 500_000, 130, 180, "acme"),
        ("cpu.rest", 500_000, 130, 180, ""),
    ]
    busy = events_of(records)[1]
    assert [(share.call_id, share.ns, share.ended) for share in busy.shares] == [("a", 30, "ok"), ("b", 20, "ok")]
    assert busy.tags == {"team": "search"}
    assert (busy.app, busy.function, busy.version, busy.container, busy.state) == (
        "shop", "cut", "v1", "c1", LeaseState.BUSY,
    )  # fmt: skip
    assert {record.tenant for record in records} == {"acme", ""}
    assert busy.ended_at == 180 / 10**9


def test_a_checkpoint_that_did_not_come_to_disk_counts() -> None:
    """A call that ran across it has a part in it."""
    note = ended_share("long", ns=30, ended_ns=230, checkpoint_ns=200, checkpoint_share_ns=40)

    kept = [event for event in events_of(recovered_usage([note], {"cpu": 200})) if event.tenant]
    assert [(event.t0, event.t1, event.shares[0].ns) for event in kept] == [(200, 230, 30)]
    lost = [event for event in events_of(recovered_usage([note], {"cpu": 100})) if event.tenant]
    assert [(event.t0, event.t1, event.shares[0].ns) for event in lost] == [(160, 230, 70)]


def test_what_was_billed_before_is_what_is_on_disk() -> None:
    """Of a call that the platform ended: what a lost checkpoint had of it is told with its end."""
    note = ended_share("a", ns=5, ended_ns=150, checkpoint_ns=100, checkpoint_share_ns=7)
    note = msgspec.structs.replace(note, share=msgspec.structs.replace(note.share, earlier=9))

    told = [
        (share.ns, share.earlier)
        for metered_ns in (100, 50)
        for event in events_of(recovered_usage([note], {"cpu": metered_ns}))
        for share in event.shares
    ]
    assert told == [(5, 9), (12, 2)]


def test_the_host_is_paid_for_as_before_the_death() -> None:
    """What a container pays for beside its slice is in its note; the operator's rest has none."""
    owner = msgspec.structs.replace(ACME, core_ppm=5, gib_ppm=7)
    found = events_of(recovered_usage([ended_share("a", ns=30, ended_ns=150, owner=owner)], {"cpu": 100}))
    assert {(event.tenant, event.core_ppm, event.gib_ppm) for event in found} == {("acme", 5, 7), ("", 0, 0)}


def test_containers_of_one_slice_pay_each_for_theirs() -> None:
    """One after the other, in events that are no larger than others."""
    first = [ended_share(f"a-{n}", ns=1, ended_ns=n + 1) for n in range(MAX_SHARES + 1)]
    last = ended_share("b", ns=5, ended_ns=MAX_SHARES + 10, owner=RIVAL)

    busy = [event for event in events_of(recovered_usage([*first, last], {"cpu": 0})) if event.tenant]

    assert [(event.tenant, len(event.shares)) for event in busy] == [("acme", MAX_SHARES), ("acme", 1), ("rival", 1)]
    assert all(before.t1 <= after.t0 for before, after in pairwise(busy))
    assert len({event.id for event in busy}) == 3


class Story:
    """A device whose agents are killed at any moment, with real files."""

    LAYOUTS = ({"s0": 500_000, "s1": 300_000}, {"s0": 500_000, "t1": 500_000}, {"u": 1_000_000})

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 1_000
        self.agents = self.calls = 0
        self.told: dict[str, int] = {}
        self.layout = 0
        self.begin()

    def begin(self) -> None:
        """Start an agent, as `open_records` and `Metering` do."""
        self.agents += 1
        self.log = UsageLog(self.folder / "usage", "boot")
        if records := recovered_usage(shares_in(self.folder / "ended", "boot"), self.log.metered):
            self.log.append(records)
        self.ended = EndedShares(self.folder / "ended", "boot")
        self.device = DeviceMeter(
            MeteredDevice(instance=f"i{self.agents}", node="n", device="g", price="h100"),
            self.LAYOUTS[self.layout],
            at_ns=self.now,
            since_ns=self.log.metered.get("g"),
            on_ended=self.ended.add,
        )
        self.running: dict[str, list[str]] = defaultdict(list)
        self.owners: dict[str, SliceOwner] = {}
        self.unwritten: list[UsageEvent] = []

    def tell(self, what: str, which: int, passed: int) -> None:
        self.now += passed
        names = list(self.device.slices)
        getattr(self, what)(names[which % len(names)])

    def start(self, name: str) -> None:
        self.calls += 1
        owner = self.owners.setdefault(
            name, msgspec.structs.replace(RIVAL if name in ("s1", "u") else ACME, container=f"c{self.calls}")
        )
        self.device.slice(name).transition(LeaseState.IDLE, self.now, owner)
        self.device.slice(name).call_started(f"call-{self.calls}", owner.tenant, self.now)
        self.running[name].append(f"call-{self.calls}")

    def end(self, name: str) -> None:
        if self.running[name]:
            call = self.running[name].pop(0)
            self.told[call] = self.device.slice(name).call_ended(call, "ok", self.now).ns

    def leave(self, name: str) -> None:
        if not self.running[name]:
            self.device.slice(name).transition(LeaseState.FREE, self.now)
            self.owners.pop(name, None)

    def recut(self, _name: str) -> None:
        try:
            self.device.recut(self.LAYOUTS[(self.layout + 1) % 3], self.now)
        except MeterMisuse:
            return
        self.layout = (self.layout + 1) % 3

    def checkpoint(self, _name: str) -> None:
        """As `Metering` does it: without a `write` before the next one, the disk has refused it."""
        is_last_on_disk = not self.unwritten
        if is_last_on_disk:
            self.ended.begin_window()
        self.unwritten += self.device.checkpoint(self.now, is_last_on_disk=is_last_on_disk)

    def write(self, _name: str) -> None:
        parts = by_tenant(self.unwritten)
        self.log.append([UsageRecord(id=f"r{n}", tenant=tenant, events=e) for n, (tenant, e) in enumerate(parts)])
        self.unwritten = []

    def kill(self, _name: str) -> None:
        self.close()
        self.begin()

    def close(self) -> None:
        self.log.close()
        self.ended.close()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["start", "start", "end", "end", "end", "leave", "recut", "checkpoint", "write", "kill"]),
        st.integers(0, 2),
        st.integers(1, 10**9),
    ),
    max_size=60,
)


CUT_THERE_AND_BACK = [
    ("checkpoint", 0, 1), ("write", 0, 1), ("start", 0, 1), ("end", 0, 100), ("leave", 0, 1), ("recut", 0, 1),
    ("recut", 0, 1), ("start", 0, 1), ("end", 0, 500), ("leave", 0, 1), ("recut", 0, 1), ("start", 0, 1),
    ("end", 0, 50),
]  # fmt: skip
TWO_REFUSED_WRITES = [
    ("start", 0, 1), ("checkpoint", 0, 10), ("write", 0, 1), ("checkpoint", 0, 15), ("checkpoint", 0, 20),
    ("end", 0, 30),
]  # fmt: skip


@examples(150)
@given(STEPS)
@example(CUT_THERE_AND_BACK)
@example(TWO_REFUSED_WRITES)
def test_told_is_billed_whenever_agents_are_killed(steps: list[tuple[str, int, int]]) -> None:
    """To the nanosecond; no instant of a slice is sold twice, and a device is never more than whole, nor less."""
    with tempfile.TemporaryDirectory() as folder:
        story = Story(Path(folder))
        for step in steps:
            story.tell(*step)
        story.kill("")
        events = events_of([pending.record for pending in story.log.pending(10**6)])
        metered = story.log.metered.get("g", 0)
        story.close()

    billed: dict[str, int] = defaultdict(int)
    for event in events:
        assert sum(share.ns for share in event.shares) == (event.t1 - event.t0 if event.shares else 0)
        for share in event.shares:
            billed[share.call_id] += share.ns
    assert {call: billed[call] for call in story.told} == story.told
    assert len({event.id for event in events}) == len(events)
    edges = sorted({event.t0 for event in events} | {event.t1 for event in events})
    for t0, t1 in pairwise(edges):
        assert sum(event.ppm for event in events if event.t0 <= t0 and t1 <= event.t1) == WHOLE_DEVICE
    assert not events or edges[-1] == metered
