"""The parking of one container: what it leaves, what it takes, and the steps in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pilotlight_core.model.messages.node_messages import Bind, SliceKind, SliceReport
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.scaling.warm_things import WarmKind
from pilotlight_runtime.calls.call_errors import truncated_error
from pilotlight_runtime.containers.parking import (
    ANY_SLOT,
    LEAVE_S,
    PARK_S,
    HookTurn,
    NodeParking,
    ParkPhase,
    ParkTurns,
    returns_to,
)
from pilotlight_runtime.guest import frames as guest
from pilotlight_runtime.guest.guest_connection import GuestConnection, GuestGone
from pilotlight_runtime.metering.container_meter import ContainerMeter
from pilotlight_runtime.sandbox.freezer import CannotFreeze
from pilotlight_runtime.sandbox.sandbox_port import Sandbox


class CannotPark(Exception):
    """It stays on its slice, and cannot serve there any more either: it has to end."""


class ContainerParking:
    """`slice` is where the container is; "" while it is parked."""

    def __init__(
        self, bind: Bind, part: SliceReport, node: NodeParking, meter: ContainerMeter, clock: Callable[[], float]
    ) -> None:
        self.id = bind.container
        self.tenant = bind.tenant
        self.slice = part.id
        self._hooks: HookTurn | None = None
        """Of a guest that has some."""
        self._sandbox: Sandbox | None = None
        """Once it is ready, as its connection."""
        self._connection: GuestConnection | None = None
        self._bind = bind
        self._part = part
        self._node = node
        self._meter = meter
        self._clock = clock
        self._turns = ParkTurns()
        self._load_s = 0.0
        self._hook_time: asyncio.Timeout | None = None
        """Of the hooks that run."""
        self._is_shortened = False
        """It is to end, though its hooks ran."""
        self._is_called_back = False
        """Somebody calls before it has left its slice."""
        self._likelihood = 0.0
        self._evict: Callable[[], None] = lambda: None

    @property
    def phase(self) -> ParkPhase:
        return self._turns.phase

    @property
    def has_memory(self) -> bool:
        """Whether it has a part of the node's memory for parked containers, or has taken it to go there."""
        return self._node.warm.get(WarmKind.PARKED, self.id) is not None

    @property
    def where(self) -> str:
        """Where it can be parked, and unparked again, as its node reports it; "": nowhere."""
        if not self._node.warm.total:
            return ""
        if self._part.kind is SliceKind.CPU:
            return ANY_SLOT
        return self._part.id if self._hooks is not None and returns_to(self._part) else ""

    def open(self, sandbox: Sandbox, connection: GuestConnection, *, load_s: float, has_hooks: bool) -> None:
        """It is ready after so long a start, and could be parked."""
        self._sandbox, self._connection, self._load_s = sandbox, connection, load_s
        self._hooks = HookTurn() if has_hooks else None

    def begin(self, likelihood: float, evict: Callable[[], None]) -> bool:
        """Have it be parked, now that it has no calls; whether there is room for it. `evict` is called to end it."""
        self._likelihood, self._evict, self._is_called_back = likelihood, evict, False
        if not self._reserve():
            return False
        self._turns.advance(ParkPhase.PARKING)
        return True

    async def go_on(self, ending: asyncio.Event) -> bool:
        """Do what was begun, unless it is `ending`; whether it serves again.

        Raises:
            CannotPark: says why it does neither.
        """
        if self.phase is ParkPhase.PARKING:
            return await self._park(ending)
        if self.phase is ParkPhase.UNPARKING:
            self._opened.thaw()
            await self._run_hooks(guest.UnparkGuest())
            if not ending.is_set():
                self._turns.advance(ParkPhase.AWAKE)
                self._node.changed()
                return True
        return False

    async def _park(self, ending: asyncio.Event) -> bool:
        """Run its hooks, stop its processes, and give back its slice; or serve again, if it was called back."""
        try:
            await self._run_hooks(guest.ParkGuest())
            if not self._is_called_back:
                await self._opened.freeze()
            if ending.is_set():
                return False
            if self._is_called_back:
                return await self._return(ending)
            if not self._reserve():  # it may use more than before its hooks ran
                raise CannotPark("there is no room to park it")
        except (CannotFreeze, CannotPark) as error:
            self._opened.thaw()  # it has to end by itself
            self._turns.revert()
            self._node.release(self.id)
            raise CannotPark(f"it could not be parked: {error}") from error
        self._meter.release()
        left, self.slice = self.slice, ""
        self._meter.park(*self._node.leave(self, left))
        self._turns.advance(ParkPhase.PARKED)
        self._node.changed()
        return False

    async def _return(self, ending: asyncio.Event) -> bool:
        self._opened.thaw()
        await self._run_hooks(guest.UnparkGuest())
        if ending.is_set():
            return False
        self._turns.revert()
        self._node.release(self.id)
        return True

    @property
    def _opened(self) -> Sandbox:
        assert self._sandbox is not None  # noqa: S101 - it was ready
        return self._sandbox

    def _reserve(self) -> bool:
        promised = self._bind.host.memory
        used = self._opened.memory_bytes() or promised
        size = min(used, promised) if promised else used
        return self._node.reserve(self, size, self._load_s, self._likelihood, self._evict)

    def thaw_to_leave(self) -> float:
        """Let what is parked end by itself; how long it has for that, 0.0: it is not parked."""
        if self.phase is ParkPhase.AWAKE:
            return LEAVE_S if self._is_shortened else 0.0
        self._opened.thaw()
        return LEAVE_S

    def limit(self, within_s: float) -> None:
        """It is to end: what its hooks do is of no use any more, and nobody waits for them."""
        if self._hook_time is None or self._hook_time.expired():
            return
        until, soon = self._hook_time.when(), asyncio.get_running_loop().time() + min(within_s, LEAVE_S)
        self._is_shortened = True
        if until is None or soon < until:
            self._hook_time.reschedule(soon)

    def call_back(self, purpose: Purpose) -> None:
        """Serve again, since it has not left its slice yet."""
        self._is_called_back = True
        self._meter.keep(purpose)

    def refusal(self, slice_id: str) -> str:
        """Why it cannot return to a slice; "" if it can."""
        if self.phase is not ParkPhase.PARKED:
            return "not_parked"
        return self._node.refusal(self, self._part, slice_id, self._bind.host)

    def take(self, slice_id: str, purpose: Purpose) -> None:
        """Take a slice, which `refusal` has not refused; its memory is its slice's from now on."""
        part = self._node.take(self, slice_id, self._bind.host, neighbours=self._bind.neighbours)
        self._meter.release()
        self._node.release(self.id)
        self.slice = part.id
        self._meter.unpark(self._node.meter(part.id), purpose)
        self._turns.advance(ParkPhase.UNPARKING)
        self._node.changed()

    def answer(self, frame: guest.HooksRan) -> bool:
        """Take its guest's answer; False if it was asked nothing."""
        error = frame.error
        text = "" if error is None else f"a hook failed: {truncated_error(error).message}"
        return self._hooks is not None and self._hooks.answer(text)

    def evicted(self) -> None:
        """Its memory is another's: it has none from now on."""
        if self.phase is ParkPhase.PARKED:
            self._meter.release()
        self._node.release(self.id)

    def on_exit(self) -> None:
        """Its sandbox has ended."""
        if self._hooks is not None:
            self._hooks.end()

    async def _run_hooks(self, ask: guest.ParkGuest | guest.UnparkGuest) -> None:
        if self._hooks is None or self._connection is None:
            return
        answered = self._hooks.begin()
        try:
            self._connection.send(ask)
            async with asyncio.timeout(PARK_S) as self._hook_time:
                error = await answered
        except (GuestGone, TimeoutError):
            error = f"its hooks did not end within {LEAVE_S if self._is_shortened else PARK_S:g} s"
        finally:
            self._hook_time = None
        if error:
            raise CannotPark(error)
