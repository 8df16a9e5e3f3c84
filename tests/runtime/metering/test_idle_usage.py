"""How much usage a fleet tells on which nothing happens: 10,000 slices, on virtual time."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from pilotlight_core.model.devices import MEMORY_DEVICE, WARM_PRICE
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import SliceKind, SliceReport
from pilotlight_core.model.messages.usage import LeaseState, UsageBatch
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE
from pilotlight_runtime.metering import usage_metering
from pilotlight_runtime.metering.ended_shares import EndedShares
from pilotlight_runtime.metering.metered_slice import SliceOwner
from pilotlight_runtime.metering.usage_log import UsageLog
from pilotlight_runtime.metering.usage_metering import EVERY_S, Metering

NODES = 250
SLICES_OF_NODE = 40
MOST_EVENTS_PER_S = 500
"""That 10,000 idle slices may cost the ledger."""
MINUTE = 60
WATCHED_S = 2 * MINUTE
"""From a node's second minute on: in its first one it starts containers."""
EIGHTH = WHOLE_DEVICE // 8


def parts() -> list[SliceReport]:
    """Four GPUs cut in seven, four whole ones and eight CPU slots: 40 slices, beside what is left of each GPU."""
    cut = [
        SliceReport(id=f"GPU-{gpu}:1g@{place}", kind=SliceKind.MIG, device=f"GPU-{gpu}", ppm=EIGHTH, price="h100")
        for gpu in range(4)
        for place in range(7)
    ]
    whole = [
        SliceReport(id=f"GPU-{gpu}", kind=SliceKind.GPU, device=f"GPU-{gpu}", ppm=WHOLE_DEVICE, price="h100")
        for gpu in range(4, 8)
    ]
    slots = [
        SliceReport(id=f"cpu-{slot}", kind=SliceKind.CPU, device="cpu", ppm=EIGHTH, price="cpu") for slot in range(8)
    ]
    return [*cut, *whole, *slots]


class IdleNode:
    """A node's meters, whose usage is counted by the second in which it comes to the stream."""

    def __init__(self, number: int, folder: Path, came: Counter[int], metered: Counter[str]) -> None:
        self.at_ns = self.began_ns = number * MINUTE * NS_PER_S // NODES
        """Nodes started at different instants of a minute."""
        self._came = came
        self._metered = metered
        self.log, self.ended = UsageLog(folder, "boot"), EndedShares(folder / "ended", "boot")
        self.metering = Metering(
            node=f"n{number}", instance=f"i{number}", region="local", slices=parts(), usage_log=self.log,
            ended_shares=self.ended, store=self, clock=lambda: self.at_ns,
        )  # fmt: skip

    async def store(self, subject: str, message: Message, *, id: str, timeout: float) -> int:  # noqa: A002
        assert isinstance(message, UsageBatch)
        self._came[self.at_ns // NS_PER_S] += len(message.events)
        for event in message.events:
            self._metered[event.device] += (event.t1 - event.t0) * event.ppm
        return 1

    def fill(self) -> None:
        """Put a container that has run a call on two of three slices, one into the host's memory, and a few blanks."""
        parked = SliceReport(
            id="parked.c9", kind=SliceKind.CPU, device=MEMORY_DEVICE, ppm=EIGHTH, price=WARM_PRICE, memory=2**30
        )
        self.metering.recut([*parts(), parked])
        self._start(parked.id, LeaseState.PARKED)
        for number, part in enumerate(parts()):
            if number % 3:
                self._start(part.id, LeaseState.IDLE)
            elif part.kind is SliceKind.MIG:
                self.metering.mark_blank(part.id, is_there=True)

    def _start(self, slice_id: str, then: LeaseState) -> None:
        meter, container = self.metering.slice(slice_id), f"on-{slice_id}"
        owner = SliceOwner(tenant="acme", app="shop", function="rank", version="ver_1", container=container)
        meter.transition(LeaseState.PROVISIONING, self.at_ns, owner)
        meter.transition(LeaseState.LOADING, self.at_ns + 10**8, owner)
        meter.transition(LeaseState.IDLE, self.at_ns + 2 * 10**8, owner)
        meter.call_started(f"call-{slice_id}", "acme", self.at_ns + 3 * 10**8)
        meter.call_ended(f"call-{slice_id}", "ok", self.at_ns + 4 * 10**8)
        meter.transition(then, self.at_ns + 5 * 10**8, owner)

    async def run(self, seconds: int) -> None:
        """What an agent does each second."""
        for _ in range(round(seconds / EVERY_S)):
            self.at_ns += round(EVERY_S * NS_PER_S)
            await self.metering.write(everything=False)
            if self.metering.unacknowledged_bytes:
                assert await self.metering.ship()


async def test_ten_thousand_idle_slices_cost_the_ledger_few_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, anyio_backend: str
) -> None:
    """In no second more than the bound, and no nanosecond of a device is left out for it."""
    monkeypatch.setattr(os, "fdatasync", lambda _: None)  # no machine fails here
    monkeypatch.setattr(usage_metering, "wall_offset_ns", lambda _: 0)
    came: Counter[int] = Counter()
    for number in range(NODES):
        metered: Counter[str] = Counter()
        node = IdleNode(number, tmp_path / str(number), came, metered)
        with closing(node.log), closing(node.ended):
            node.fill()
            await node.run(MINUTE + WATCHED_S)
            await node.metering.write()
            assert await node.metering.ship()
            node.metering.check_integrity()
        passed = (node.at_ns - node.began_ns) * WHOLE_DEVICE
        assert metered == dict.fromkeys([*(f"GPU-{gpu}" for gpu in range(8)), "cpu", MEMORY_DEVICE], passed)
    assert NODES * SLICES_OF_NODE == 10_000 == NODES * len(parts())
    watched = [came[second] for second in range(2 * MINUTE, MINUTE + WATCHED_S)]  # the last node began with the minute
    assert max(watched) <= MOST_EVENTS_PER_S
    assert min(watched) > 0, "nothing came: it would say nothing"
