"""What `desired` says of a plain function, from numbers alone and without reasons. Pure.

A plain function has one version, which is deployed and held to its specification; nothing is planned of it, no curve
is known, and its home and its containers tell the same of what runs. Whoever asks millions of times about such ones, as
a simulation does, gets the same counts as from `desired` for a tenth of the work. A test holds it to that.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_autoscaler.policy.consolidation import least_by_slots, slots_carry
from pilotlight_autoscaler.policy.desired import cools_until
from pilotlight_autoscaler.policy.prediction.function_memory import MINUTE_S, FunctionMemory
from pilotlight_autoscaler.policy.scaling_policy import call_s, first_load_s, wanted_for
from pilotlight_core.model.scaling.scale_record import deployed
from pilotlight_core.model.spec import FunctionSpec


class CallsWaiting(NamedTuple):
    """The calls that want room."""

    queued: int
    calls: int
    """Those that wait, were turned away, or came too late."""
    oldest_run_ms: float
    """For how long the oldest running call runs, if none has ended yet."""
    start_s: float | None
    """For how long the oldest start goes on; None: a container is ready."""


class PlainVersion:
    """The numbers of a plain function: those of its specification, and those of an instant."""

    __slots__ = (
        "buffer", "ceiling", "floor", "is_called", "level_ms", "rate", "service_ms", "size", "slots", "wanted",
        "window_s", "zero_window_s",
    )  # fmt: skip

    def __init__(self, spec: FunctionSpec) -> None:
        self.slots = spec.slots_of_all
        self.floor = spec.min_containers
        self.buffer = spec.buffer_containers
        self.ceiling = spec.max_containers
        self.window_s = float(spec.scaledown_window)
        self.zero_window_s = float(deployed(spec, "zero_window"))
        self.level_ms = spec.slo.p95_ms
        self.size = 0
        """Containers that are there or start."""
        self.wanted = 0
        """Containers for the present calls, before floor, buffer and ceiling."""
        self.is_called = False
        """Whether calls wait or run."""
        self.service_ms = 0.0
        """How long a call takes; 0: nobody knows."""
        self.rate = 0.0
        """Calls per second that arrive. It need not be known while no more containers are there than are wanted."""

    def update(self, waiting: CallsWaiting | None, running: int, service_ms: float) -> None:
        """So many calls run, and these want room."""
        service_s = 0.0
        if waiting is not None:
            start_s = 0.0 if waiting.start_s is None else first_load_s(waiting.start_s)
            service_s = call_s(service_ms, waiting.oldest_run_ms, start_s)
        self.wanted = wanted_for(0 if waiting is None else waiting.calls, running, self.slots, service_s)
        self.is_called = bool(running or (waiting is not None and waiting.queued))
        self.service_ms = service_ms

    def carries(self, count: int) -> bool:
        """Whether so many containers carry the calls that arrive."""
        return not self.rate or slots_carry(self.rate, self.service_ms, count * self.slots, self.level_ms)

    def least_kept(self, wanted: int) -> int:
        """How many containers its calls need, of those beyond `wanted`."""
        least = least_by_slots(self.rate, self.service_ms, self.slots) if self.rate else 0
        count = least if least < self.size else self.size
        if count < wanted:
            count = wanted
        while count < self.size and not self.carries(count):
            count += 1
        return count


class PlainWish(NamedTuple):
    needed: int
    """Containers that calls need now."""
    containers: int
    """As `Wish.count`."""
    ahead: int
    """As `Wish.ahead`."""
    holds_until: float
    """When it may be another, if none that is there should go before; the instant itself: any may."""


def plain_wish(seen: PlainVersion, memory: FunctionMemory, at: float) -> PlainWish:
    """The wish of an instant, in unix seconds."""
    # Without `min` and `max`: compiled, they make objects of numbers.
    needed, most, size = seen.wanted, seen.ceiling, seen.size
    unforeseen = needed if needed > seen.floor else seen.floor
    if seen.buffer and seen.is_called and needed + seen.buffer > unforeseen:
        unforeseen = needed + seen.buffer
    count = memory.ahead()
    if count < unforeseen:
        count = unforeseen
    if count > most:
        count = most
    ahead = count - unforeseen if count > unforeseen else 0
    if size > count:
        kept = seen.least_kept(count)
        count = max(count, kept if kept < most else most)
    holds_until, cool = at, cools_until(memory, seen.window_s)
    if at < cool:
        held = size if size < most else most
        if held > count:
            count = held
        holds_until = cool
        if memory.is_known:
            minute_end = (at // MINUTE_S + 1) * MINUTE_S
            if minute_end < cool:
                holds_until = minute_end
    return PlainWish(needed if needed < most else most, count, ahead, holds_until)
