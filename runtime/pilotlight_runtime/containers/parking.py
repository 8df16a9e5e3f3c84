"""How a container leaves its slice for the host's memory, and comes back. `ParkTurns` is pure.

    AWAKE -> PARKING      it takes no call; its hooks run; its processes are frozen
    PARKING -> PARKED     its slice is given back; its memory is what the node keeps for parked containers
    PARKED -> UNPARKING   it has a slice again; its processes go on; its hooks run
    UNPARKING -> AWAKE    it takes calls

It can end at any time. Whoever kills it need not thaw it before. An agent that is killed takes its containers along,
frozen or not: nothing of what is parked outlives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from pilotlight_core.model.messages.node_messages import HostShare, SliceKind, SliceReport
from pilotlight_core.model.scaling.warm_things import WarmKind, WarmThing
from pilotlight_runtime.containers.host_budget import HostBudget
from pilotlight_runtime.containers.warm_memory import WarmMemory
from pilotlight_runtime.metering.slices import Slices
from pilotlight_runtime.metering.usage_metering import Meter, Metering

PARK_S = 30.0
"""Bounds each of the hooks."""
LEAVE_S = 2.0
"""Bounds the exit hooks of a parked container, which has no slice: they are on the house, so they are short."""
ANY_SLOT = "any"


class ParkPhase(Enum):
    AWAKE = auto()
    PARKING = auto()
    PARKED = auto()
    UNPARKING = auto()


AFTER = {
    ParkPhase.AWAKE: ParkPhase.PARKING,
    ParkPhase.PARKING: ParkPhase.PARKED,
    ParkPhase.PARKED: ParkPhase.UNPARKING,
    ParkPhase.UNPARKING: ParkPhase.AWAKE,
}


class ParkTurns:
    """The phase of one container. Each step is asked for in the phase before it, or it is refused."""

    def __init__(self) -> None:
        self.phase = ParkPhase.AWAKE

    def may(self, to: ParkPhase) -> bool:
        return AFTER[self.phase] is to

    def advance(self, to: ParkPhase) -> None:
        """Raises ValueError for any other than the next one."""
        if not self.may(to):
            raise ValueError(f"a container that is {self.phase.name} cannot become {to.name}")
        self.phase = to

    def revert(self) -> None:
        """What was to be parked could not be."""
        if self.phase is not ParkPhase.PARKING:
            raise ValueError(f"a container that is {self.phase.name} is not on its way")
        self.phase = ParkPhase.AWAKE


def returns_to(part: SliceReport) -> bool:
    """Whether a container that leaves a part of GPUs is told to return to it: nodes offer it, once it is free.

    A share ends with its container, and nobody offers several GPUs as one.
    """
    return part.kind is SliceKind.MIG or (part.kind is SliceKind.GPU and part.id == part.device)


class Parkable(Protocol):
    """What of a container its node has to know to park it."""

    id: str
    tenant: str

    @property
    def slice(self) -> str: ...


class NodeParking:
    """The slices, the promises and the memory of a node, between which its containers move."""

    def __init__(
        self,
        slices: Slices,
        host: HostBudget,
        warm: WarmMemory,
        metering: Metering,
        *,
        changed: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        """`changed` is called when a report is due."""
        self.changed = changed
        self._slices = slices
        self._host = host
        self._metering = metering
        self._clock = clock
        self.warm = warm

    def reserve(
        self, container: Parkable, size: int, load_s: float, likelihood: float, evict: Callable[[], None]
    ) -> bool:
        """Take memory for a container that is to be parked, from what is worth less; whether there is enough."""
        return self.warm.take(
            WarmThing(
                kind=WarmKind.PARKED, name=container.id, tenant=container.tenant, size=size, load_s=load_s,
                likelihood=likelihood, since=self._clock(), evict=evict,
            )
        )  # fmt: skip

    def leave(self, container: Parkable, slice_id: str) -> tuple[Meter, int]:
        """Give back a container's slice and its promise; the meter of its memory, and the bytes of that.

        Raises:
            LookupError: its memory was given to another meanwhile.
        """
        thing = self.warm.get(WarmKind.PARKED, container.id)
        if thing is None:
            raise LookupError(container.id)
        part = self._slices.park(slice_id, thing.size)
        self._host.release(container.id)
        return self._metering.slice(part.id), thing.size

    def refusal(self, container: Parkable, part: SliceReport, slice_id: str, share: HostShare) -> str:
        """Why a parked container cannot return to a slice; "" if it can. `part` is the one that it had."""
        if part.kind is not SliceKind.CPU and slice_id != part.id:
            return "other_slice"
        if refusal := self._slices.refusal(slice_id, container.tenant):
            return refusal
        return self._host.refusal(share)

    def take(self, container: Parkable, slice_id: str, share: HostShare, *, neighbours: bool) -> SliceReport:
        """Give a parked container a slice and its promise again, which `refusal` has not refused."""
        part = self._slices.take(slice_id, container.id, container.tenant, neighbours=neighbours, wants_blank=False)
        self._host.take(container.id, share)
        return part

    def meter(self, slice_id: str) -> Meter:
        return self._metering.slice(slice_id)

    def release(self, container: str) -> None:
        """A container has no memory here any more, if it had."""
        self._slices.unpark(container)
        self.warm.release(WarmKind.PARKED, container)

    def end(self, container: Parkable) -> None:
        """A container has ended, parked or not."""
        if container.slice:
            self._slices.release(container.slice)
            self._host.release(container.id)
        self.release(container.id)


class HookTurn:
    """What a guest was asked to do, and has to answer."""

    def __init__(self) -> None:
        self._answered: asyncio.Future[str] | None = None

    def begin(self) -> asyncio.Future[str]:
        self._answered = asyncio.get_running_loop().create_future()
        return self._answered

    def answer(self, error: str) -> bool:
        """Take the guest's answer; False if it was asked nothing."""
        if self._answered is None or self._answered.done():
            return False
        self._answered.set_result(error)
        return True

    def end(self) -> None:
        """The guest has ended."""
        if self._answered is not None and not self._answered.done():
            self._answered.set_result("its sandbox has ended")
