"""Starts that fail again and again: how often they are tried, and what that does to others."""

from __future__ import annotations

from itertools import count

import msgspec
import pytest

from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.policy.start_backoff import LONGEST_DELAY_S, REMEMBERED_S, StartBackoff
from pilotlight_core.model.messages.node_messages import Bind, ContainerState
from tests.autoscaler.builders import demand, record, report
from tests.builders.calls import credit
from tests.builders.nodes import container

TICK_S = 0.25
FAILS_AFTER_S = 1.0


def test_a_version_that_never_failed_is_not_delayed() -> None:
    """Whatever its tenant's others do."""
    backoff = StartBackoff()
    backoff.failed("bad", "acme", 0.0)

    assert backoff.refused(["bad", "good"], 0.1) == {"bad"}
    assert not backoff.is_failing("good")


def test_each_failure_in_a_row_doubles_the_delay_up_to_a_bound() -> None:
    """A success forgets them, and so does a long time; thousands of failures are a number still."""
    backoff, at, delays = StartBackoff(), 0.0, []
    for _ in range(3_000):
        backoff.failed("bad", "acme", at)
        began = at
        while backoff.refused(["bad"], at):
            at += 0.5
        delays.append(at - began)
        backoff.forget(at)

    assert delays[:8] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_DELAY_S, LONGEST_DELAY_S]
    assert set(delays[8:]) == {LONGEST_DELAY_S}
    backoff.succeeded("bad")
    assert not backoff.refused(["bad"], at)
    backoff.failed("bad", "acme", at)
    backoff.forget(at + 0.5 + REMEMBERED_S + 1.0)
    assert not backoff.is_failing("bad")


def test_what_was_ready_and_failed_a_check_is_not_made_up_for_by_what_is_ready() -> None:
    """Until it is long ago."""
    backoff = StartBackoff()
    backoff.failed("bad", "acme", 0.0, was_ready=True)
    backoff.succeeded("bad")
    backoff.failed("bad", "acme", 10.0)
    backoff.succeeded("bad")

    assert backoff.refused(["bad"], 10.9) == {"bad"}
    backoff.forget(11.0 + REMEMBERED_S + 0.1)
    assert not backoff.is_failing("bad")


def test_a_tenants_failing_versions_take_turns() -> None:
    """The one that is due longest; another tenant's is no part of it."""
    backoff = StartBackoff()
    for version, tenant, at in (("a", "acme", 0.0), ("b", "acme", 0.1), ("z", "zoo", 0.2)):
        backoff.failed(version, tenant, at)

    assert backoff.refused("abz", 5.0) == {"b"}
    backoff.tried("a", 5.0)
    assert backoff.refused("abz", 5.4) == {"a", "b"}
    backoff.failed("a", "acme", 5.4)  # its second: a second's delay, for both
    assert backoff.refused("abz", 6.3) == {"a", "b"}
    assert backoff.refused("abz", 6.5) == {"a"}


class Storm:
    """A node of a few slots in virtual time, on which all containers of `acme` fail to start after a second."""

    def __init__(self, slots: int, versions: int) -> None:
        self.world = World()
        self.slots = slots
        self.bad = [msgspec.structs.replace(record(f"ver_{n:03}"), function=f"f{n}") for n in range(versions)]
        self.victim = msgspec.structs.replace(record("ver_zoo"), tenant="zoo", app="zoo")
        self.on: dict[int, tuple[Bind, float]] = {}
        """slot -> what starts there, and since when."""
        self.starts: list[float] = []
        self.victim_at: float | None = None
        self._ids, self._seq = count(1), count(1)

    def run(self, until_s: float, victim_from_s: float) -> None:
        at = 1.0
        while at < until_s:
            self._end(at)
            self._tell(at, victim_from_s)
            self._decide(at)
            at += TICK_S

    def _end(self, at: float) -> None:
        for slot, (bind, since) in list(self.on.items()):
            if bind.tenant == "acme" and at - since >= FAILS_AFTER_S:
                del self.on[slot]
                gone = credit(bind.container, version=bind.version, tenant="acme", state=ContainerState.GONE)
                self.world.on_credit(gone, at)

    def _tell(self, at: float, victim_from_s: float) -> None:
        there = [
            container(
                bind.container, bind.version, tenant=bind.tenant, slice=f"cpu-{slot}", state=ContainerState.LOADING
            )
            for slot, (bind, _) in self.on.items()
        ]
        self.world.on_report(report(*there, slots=self.slots, seq=next(self._seq)), at)
        for number, version in enumerate(self.bad):
            self.world.on_demand(demand(version.id, queued=5, oldest_ms=1e6 + number), at)
        if at >= victim_from_s:
            self.world.on_demand(msgspec.structs.replace(demand("ver_zoo", queued=1), tenant="zoo"), at)

    def _decide(self, at: float) -> None:
        versions = {each.id: each for each in (*self.bad, self.victim)}
        given = PassInput(
            versions=versions, deployed=versions, epoch=1, new_id=lambda _: f"ctr_{next(self._ids)}", at=at
        )
        self.world.forget(at)
        for sent in Pass(self.world, given).run().commands:
            if isinstance(bind := sent.command, Bind):
                self.world.pending[bind.container] = PendingBind(bind=bind, node="n1", at=at)
                self.on[int(bind.slice.removeprefix("cpu-"))] = bind, at
                if bind.tenant == "zoo":
                    self.victim_at = at
                else:
                    self.starts.append(at)


def test_a_storm_of_failing_starts_delays_nobody_else() -> None:
    """Another tenant's first call has the next slot that is free, however many older calls wait."""
    storm = Storm(slots=4, versions=60)

    storm.run(until_s=20.0, victim_from_s=10.0)

    assert storm.victim_at is not None
    assert storm.victim_at - 10.0 <= FAILS_AFTER_S + 2 * TICK_S


@pytest.mark.variant
def test_a_storm_is_over_once_each_version_was_tried() -> None:
    """From then on it is as many starts as one failing version takes: two in three seconds, and fewer with time."""
    storm = Storm(slots=8, versions=50)

    storm.run(until_s=120.0, victim_from_s=1e9)

    assert len(storm.starts) <= 50 + 70
    assert sum(start > 60.0 for start in storm.starts) <= 40
