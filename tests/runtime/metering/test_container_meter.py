"""The meter of one container."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_runtime.metering.container_meter import ContainerMeter, WorkKey, WorkLog
from pilotlight_runtime.metering.meter import MeteredSlice, MeterMisuse, SliceMeter, SliceOwner

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
    container.meter.call_started("a", "caller")
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
