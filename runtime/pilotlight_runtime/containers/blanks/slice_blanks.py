"""Blanks on free GPUs and MIG instances: at most one on each, which sees that one and has not opened CUDA.

A blank gives way at once when its slice is cut away, fails, or is taken together with others; who takes the slice alone
finds the blank there. Until then its slice is metered as a blank's, for which the operator pays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import structlog

from pilotlight_core.model.messages.node_messages import BlankSize, SliceReport
from pilotlight_runtime.containers.blanks.blank import Blank, BlankDied, ignore_exit
from pilotlight_runtime.containers.blanks.blank_plan import everywhere, planned_blanks
from pilotlight_runtime.containers.blanks.blank_pool import PAUSES_S, BusyContainers, wait_quiet
from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.devices.device_port import DeviceAccess, Devices
from pilotlight_runtime.sandbox.sandbox_errors import SandboxError
from pilotlight_runtime.sandbox.sandbox_port import SandboxExit
from pilotlight_runtime.sandbox.sandbox_spec import ResourceLimits

log = structlog.get_logger(__name__)


class BlankSlices(Protocol):
    """The slices of the node, as `Slices` has them."""

    def free_gpus(self) -> list[SliceReport]: ...
    def keeps_blank(self, slice_id: str) -> bool: ...
    def mark_blank(self, slice_id: str, *, is_there: bool) -> None: ...


class SliceBlanks:
    """`changed` is called when the number of ready ones changes; `most` is of all slices together.

    The first of `starters` is of the base environment that is kept until `resize` says otherwise.
    """

    def __init__(
        self,
        starters: Iterable[BlankStarter],
        devices: Devices,
        slices: BlankSlices,
        *,
        most: int,
        changed: Callable[[], None],
        pauses_s: tuple[float, ...] = PAUSES_S,
    ) -> None:
        self._starters = {starter.base.name: starter for starter in starters}
        self._devices = devices
        self._slices = slices
        self._most = most
        self._changed = changed
        self._pauses_s = pauses_s
        self._blanks: dict[str, _Placed] = {}
        """By slice."""
        self._sizes: Sequence[BlankSize] | None = None
        self._unfit: set[str] = set()
        """Base environments whose imports open CUDA."""
        self._woken = asyncio.Event()
        self._failures = 0
        self._is_first_fill = True

    @property
    def ready(self) -> Mapping[str, str]:
        """Slice -> base environment of the blank that is ready there."""
        return {slice_id: placed.base for slice_id, placed in self._blanks.items() if placed.blank.is_ready}

    @property
    def missing(self) -> int:
        """How many are planned that are not ready."""
        planned, ready = self._planned(self._free()), self.ready
        return sum(ready.get(slice_id) != base for slice_id, base in planned.items())

    def resize(self, sizes: Sequence[BlankSize]) -> None:
        """Keep so many from now on."""
        self._sizes = sizes
        self.wake()

    def take(self, base: str, part: SliceReport, access: DeviceAccess, limits: ResourceLimits) -> Blank | None:
        """The blank of a slice for the container that has it; None if there is none that would do.

        One that is still importing will do: what runs on a GPU nearly always needs what it imports.
        """
        slice_id = part.id if part.id in self._blanks else part.device
        placed = self._blanks.pop(slice_id, None)
        if placed is None:
            return None
        blank, starter = placed.blank, self._starters[placed.base]
        blank.on_exit = ignore_exit
        fits = placed.base == base and placed.shows(access) and starter.can_limit_later(limits)
        if not fits or blank.exit is not None:
            self._end(blank)
            return None
        return blank if starter.limit(blank, limits) else None

    def check(self) -> None:
        """Give up the blanks of slices that are gone or somebody else's; call it when slices have changed."""
        for slice_id in list(self._blanks):
            if self._slices.keeps_blank(slice_id):
                self._slices.mark_blank(slice_id, is_there=True)
            else:
                self._give_up(slice_id)
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    async def run(self, demand: BusyContainers) -> None:
        """Keep the blanks that are planned until cancelled."""
        while True:
            while (found := self._next()) is not None:
                await wait_quiet(demand, self._woken)
                if found == self._next():  # else it was taken meanwhile
                    await self._make(*found)
            self._is_first_fill = False
            await self._woken.wait()
            self._woken.clear()

    async def close(self) -> None:
        """End all."""
        placed, self._blanks = list(self._blanks.values()), {}
        async with asyncio.TaskGroup() as group:
            for each in placed:
                each.blank.on_exit = ignore_exit
                group.create_task(each.blank.destroy())

    # -- inside -------------------------------------------------------------------------------------------------

    def _next(self) -> tuple[str, str] | None:
        """The next slice that should have a blank, and of which base; those that should not be are given up."""
        free = self._free()
        planned = self._planned(free)
        for part in free:
            placed = self._blanks.get(part.id)
            if placed is not None and planned.get(part.id) != placed.base:
                self._give_up(part.id)
        return next(((name, base) for name, base in planned.items() if name not in self._blanks), None)

    def _free(self) -> list[SliceReport]:
        return self._slices.free_gpus() if self._most else []

    def _planned(self, free: Sequence[SliceReport]) -> dict[str, str]:
        there = {slice_id: placed.base for slice_id, placed in self._blanks.items()}
        return planned_blanks(free, self._wanted(free), there, self._most)

    def _wanted(self, free: Sequence[SliceReport]) -> list[BlankSize]:
        sizes = everywhere(next(iter(self._starters), ""), free) if self._sizes is None else self._sizes
        return [size for size in sizes if size.base in self._starters and size.base not in self._unfit]

    async def _make(self, slice_id: str, base: str) -> None:
        starter, blank = self._starters[base], None
        try:
            access = self._devices.access(slice_id)
            limits = starter.first_limits if self._is_first_fill else starter.limits
            blank = await starter.start(limits, access, ahead=True)
            if not self._place(slice_id, _Placed(base, blank, access)):
                return
            await blank.wait_ready()
        except (SandboxError, BlankDied, OSError, LookupError) as error:
            failed: Exception | None = error
        else:
            failed = None
        if blank is not None and not self._is_on(slice_id, blank):
            return  # it was taken, or given up
        if failed is not None:
            self._give_up(slice_id)
            log.warning("no blank could be made on a GPU", slice=slice_id, base=base, error=str(failed))
            await asyncio.sleep(self._pauses_s[min(self._failures, len(self._pauses_s) - 1)])
            self._failures += 1
        elif blank is not None:
            self._failures = 0
            self._on_ready(slice_id, base, blank)

    def _on_ready(self, slice_id: str, base: str, blank: Blank) -> None:
        if blank.has_opened_cuda:
            log.error("this base environment has no blanks on GPUs: what blanks import opens CUDA", base=base)
            self._unfit.add(base)
            self._give_up(slice_id)
            return
        blank.on_exit = lambda exit_: self._lost(slice_id, blank, exit_)
        self._changed()

    def _place(self, slice_id: str, placed: _Placed) -> bool:
        """Put a blank on its slice, unless that was taken while the sandbox started."""
        if any(part.id == slice_id for part in self._slices.free_gpus()) and slice_id not in self._blanks:
            self._blanks[slice_id] = placed
            self._slices.mark_blank(slice_id, is_there=True)
            return True
        self._end(placed.blank)
        return False

    def _is_on(self, slice_id: str, blank: Blank) -> bool:
        placed = self._blanks.get(slice_id)
        return placed is not None and placed.blank is blank

    def _give_up(self, slice_id: str) -> None:
        placed = self._blanks.pop(slice_id, None)
        self._slices.mark_blank(slice_id, is_there=False)
        if placed is not None:
            placed.blank.on_exit = ignore_exit
            self._end(placed.blank)
            self._changed()

    def _lost(self, slice_id: str, blank: Blank, exit_: SandboxExit) -> None:
        log.warning("a blank on a GPU has ended before it was used", slice=slice_id, exit=str(exit_))
        if self._is_on(slice_id, blank):
            self._give_up(slice_id)
        self.wake()

    def _end(self, blank: Blank) -> None:
        """Kill it at once, since its slice may be cut next; its files go soon after."""
        blank.sandbox.kill()
        next(iter(self._starters.values())).group.create_task(blank.destroy())


class _Placed:
    """A blank on a slice, and what it sees there."""

    def __init__(self, base: str, blank: Blank, access: DeviceAccess) -> None:
        self.base = base
        self.blank = blank
        self._access = access

    def shows(self, access: DeviceAccess) -> bool:
        """Whether it sees just what a container with this access must see; variables follow with its Load."""
        return self._access.nodes == access.nodes and self._access.read_only == access.read_only
