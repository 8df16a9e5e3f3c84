"""A container that has several whole devices."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.usage import LeaseState
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_runtime.metering.meter import SliceMeter
from pilotlight_runtime.metering.metered_slice import MeteredSlice, SliceOwner
from pilotlight_runtime.metering.several_meters import SeveralMeters

ACME = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container="c1")
WHOLE = MeteredSlice(instance="i", node="n", device="g", slice="g", ppm=WHOLE_DEVICE, price="h100")


def test_several_whole_devices_are_used_alike() -> None:
    """A call on two costs both, and both are the container's for the same time."""
    meters = [SliceMeter(WHOLE, at_ns=0) for _ in range(2)]
    both = SeveralMeters(meters)
    both.transition(LeaseState.IDLE, 10, msgspec.structs.replace(ACME, core_ppm=5, gib_ppm=7))
    both.call_started("a", "acme", 20)
    assert (both.state, both.price) == (LeaseState.BUSY, "h100")
    spent = both.call_ended("a", "ok", 50, batch_size=2)

    assert (spent.ns, spent.ppm, spent.batch_size) == (30, 2 * WHOLE_DEVICE, 2)
    events = [meter.checkpoint(60) for meter in meters]
    first, second = ([(one.state, one.t0, one.t1) for one in some] for some in events)
    assert first == second
    assert (spent.core_ppm, spent.gib_ppm) == (5, 7)
    paid = [{(one.core_ppm, one.gib_ppm) for one in some if one.tenant} for some in events]
    assert paid == [{(5, 7)}, {(0, 0)}]  # the host is paid for once

    both.keep(msgspec.structs.replace(ACME, purpose=Purpose.PREWARM, core_ppm=5), 70)
    assert not both.used
    kept = [[(one.purpose.value, one.core_ppm) for one in meter.checkpoint(80)] for meter in meters]
    assert kept == [[("call", 5), ("prewarm", 5)], [("call", 0), ("prewarm", 0)]]
