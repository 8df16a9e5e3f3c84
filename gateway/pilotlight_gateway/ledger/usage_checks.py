"""Whether a metered interval can be true. Pure.

A node may be hostile, and the fold must not stop for what it sends: whatever has no place in the ledger goes into
quarantine. Beyond ranges, four bounds hold, all by the bus's clock, since a node has only its own word for its clocks:

    who    a tenant pays only for a container that the controller bound on that node, at its slice, ppm and price
    time   all intervals of a container are no longer than it has been bound
    sum    all intervals of a device are no longer than the device has been known
    calls  a container has ended no more of them than its slots had time for: each may be charged beside its time
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import msgspec

from pilotlight_core.model.devices import CPU_PRICE, MEMORY_DEVICE, WARM_PRICE, is_cpu_price
from pilotlight_core.model.ids import NAME, tags_fault
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import MOST_UNITS
from pilotlight_core.model.pipelines.pipeline import hook_place, is_companion
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.units import NS_PER_S, WHOLE_DEVICE
from pilotlight_gateway.ledger.ledger_entries import LONGEST_NS
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery

OLDEST_S = 35 * 86_400.0
"""What is older when it is folded goes into quarantine: lines are kept for much longer, so that what a restored stream
has again is known, and counts once."""
CLOCK_SKEW_S = 3_600.0
"""The wall clocks of two hosts differ by less."""
MOST_NS = 2**62
MOST_HOST_PPM = 2**40
MOST_BATCH = 1_000_000
DRIFT = 1.001
"""Two clocks that run alike differ by less."""
BOUND_SLACK_NS = 10 * NS_PER_S
DEVICE_SLACK_NS = 3_600 * NS_PER_S
"""A device may have been metered for so long before the bus heard of it."""
MOST_DEVICES = 4_096
"""Of one node."""
SLOT_STARTS_PER_S = 5_000
"""A slot takes no more calls in a second: the end of one has to reach a gateway before the next one comes. An agent and
a guest take 50 us for a call, several times as much passes between two of one slot, and those of a batch are slots too.
"""
STARTS_PER_S = 100_000
"""Of one container, whatever its slots: its guest is one process."""
STARTS_SLACK_S = 10

PURCHASES = ("", Purchase.ON_DEMAND, Purchase.SPOT)
OPERATOR_PAYS = frozenset({LeaseState.FREE, LeaseState.BLANK})
EITHER_PAYS = frozenset({LeaseState.PROVISIONING, LeaseState.PARKED})
"""The operator or a tenant, as the agent says: the tenant only under a binding."""

TEXT = re.compile(r"[!-~]{0,255}")
"""Ids of events, devices and slices: without spaces, and short enough for their columns."""
CALL = re.compile(r"[A-Za-z0-9_-]{1,64}")
LONGEST_NAME = 63


class UsageFault(StrEnum):
    """Why usage is in quarantine."""

    UNREADABLE = "unreadable"  # no message of the platform, nor kept until a release reads it
    NOT_ITS_PLACE = "not_its_place"  # another message than agents store there
    OTHER_NODE = "other_node"  # an interval of another node than its sender's
    REPEATED_ID = "repeated_id"  # its id is another node's
    BAD_NAME = "bad_name"  # a name or an id that is none
    BAD_TIME = "bad_time"  # instants that cannot be
    TOO_OLD = "too_old"  # it ended more than 35 days ago
    BAD_PART = "bad_part"  # a part of a device that cannot be
    BAD_SHARES = "bad_shares"  # shares of calls that are not the interval
    BAD_STATE = "bad_state"  # a state for which nobody pays, with a tenant, or the reverse
    NOT_BOUND = "not_bound"  # no such container was bound there
    OTHER_TERMS = "other_terms"  # the container was bound for another tenant, version, slice, price or purchase
    TOO_LONG = "too_long"  # the container has not been bound for so long
    TOO_MUCH = "too_much"  # the device has not been known for so long
    TOO_MANY = "too_many"  # the container had no time for so many calls
    NOT_STORED = "not_stored"  # the database did not take it


@dataclass(slots=True, kw_only=True)
class BoundContainer:
    """A row of `bound_container`: the terms of a binding, and how much was folded under it."""

    container: str
    node: str
    tenant: str
    app: str
    function: str
    version: str
    slice: str
    ppm: int
    price: str
    bound_at: float
    """Unix seconds, by the bus's clock."""
    ended_at: float | None = None
    ns: int = 0
    """Folded so far, over all devices of its slice."""
    core_ppm: int = 0
    gib_ppm: int = 0
    slots: int = 0
    """0: not known, of before it was kept."""
    starts: int = 0
    """Of calls that were folded with their ends, over all devices."""
    max_units: str | None = None
    """What a call is billed for at most of units, as a JSON object; None: it is billed for none."""
    region: str | None = None
    purchase: str | None = None
    """On record of its node, as is its region; None: it is not, and the node's word counts."""

    @property
    def most_units(self) -> dict[str, int]:
        return msgspec.json.decode(self.max_units) if self.max_units else {}

    @property
    def parts(self) -> tuple[str, ...]:
        """The metered slices: the slice itself, or each of several whole devices."""
        devices = self.slice.split("+")
        return tuple(devices) if len(devices) > 1 else (self.slice,)


@dataclass(slots=True, kw_only=True)
class KnownDevice:
    """A row of `known_device`: how much of a device was folded."""

    node: str
    device: str
    since: float
    """When the bus first heard of it, in unix seconds."""
    ns: int = 0
    """Of the whole device."""


def fault_of(event: UsageEvent, delivery: UsageDelivery) -> UsageFault | None:
    """Why an interval cannot be, whoever pays for it; None: it can."""
    if delivery.sender is Sender.AGENT and event.node != delivery.node:
        return UsageFault.OTHER_NODE
    if not _are_names(event):
        return UsageFault.BAD_NAME
    if not _is_time(event, delivery.at):
        return UsageFault.BAD_TIME
    if event.ended_at < max(delivery.at, delivery.read_at) - OLDEST_S:
        return UsageFault.TOO_OLD
    if not (0 < event.ppm <= WHOLE_DEVICE and 0 <= event.memory <= MOST_NS and _is_host(event)):
        return UsageFault.BAD_PART
    if event.state not in EITHER_PAYS and bool(event.tenant) is (event.state in OPERATOR_PAYS):
        return UsageFault.BAD_STATE
    if event.state is LeaseState.BUSY:
        if not _are_shares(event.shares) or sum(share.ns for share in event.shares) != event.t1 - event.t0:
            return UsageFault.BAD_SHARES
    elif event.shares:
        return UsageFault.BAD_SHARES
    return None


def binding_fault(event: UsageEvent, bound: BoundContainer | None, at: float) -> UsageFault | None:
    """Why a tenant does not pay for an interval that was stored at `at`; None: it does."""
    if bound is None or bound.node != event.node:
        return UsageFault.NOT_BOUND
    if (event.tenant, event.app, event.function, event.version) != (
        bound.tenant, bound.app, bound.function, bound.version,
    ):  # fmt: skip
        return UsageFault.OTHER_TERMS
    is_its = event.slice in bound.parts and (event.ppm, event.price) == (bound.ppm, bound.price)
    if not is_its and (event.slice in bound.parts or not (_is_parked(event) or _is_other_slot(event, bound))):
        return UsageFault.OTHER_TERMS
    if bound.purchase and (event.region, event.purchase) != (bound.region, bound.purchase):
        return UsageFault.OTHER_TERMS
    # An older agent bills nothing of the host, and one with several devices on the first alone.
    of_host = (bound.core_ppm, bound.gib_ppm) if event.slice not in bound.parts[1:] else (0, 0)
    if event.core_ppm > of_host[0] or event.gib_ppm > of_host[1]:
        return UsageFault.OTHER_TERMS
    until = at if bound.ended_at is None else min(at, bound.ended_at)
    bound_s = max(0.0, until - bound.bound_at)
    if bound.ns + event.t1 - event.t0 > len(bound.parts) * _allowed_ns(bound_s, BOUND_SLACK_NS):
        return UsageFault.TOO_LONG
    return UsageFault.TOO_MANY if bound.starts + starts_in(event) > most_starts(bound, bound_s) else None


def _is_parked(event: UsageEvent) -> bool:
    """Whether it is of a parked container, which pays for its memory alone, and no more of that than it was promised.

    The parts of what its node keeps for parked containers have no price of their own.
    """
    is_memory = (event.device, event.price) == (MEMORY_DEVICE, WARM_PRICE)
    return is_memory and event.state is LeaseState.PARKED and not event.core_ppm


def _is_other_slot(event: UsageEvent, bound: BoundContainer) -> bool:
    """Whether it is of a CPU slot to which a container has returned that was bound to another: all are alike.

    A rest of a division is dealt out among them.
    """
    is_slot = is_cpu_price(bound.price) and event.price == bound.price and event.device == CPU_PRICE
    return is_slot and abs(event.ppm - bound.ppm) <= 1


def starts_in(event: UsageEvent) -> int:
    """The starts of calls that ended in an interval."""
    return sum(bool(share.ended) for share in event.shares)


def most_starts(bound: BoundContainer, bound_s: float) -> int:
    """The starts of calls that a container can have ended which has been bound for so long, over all devices."""
    per_s = min(bound.slots * SLOT_STARTS_PER_S, STARTS_PER_S) if bound.slots else STARTS_PER_S
    return len(bound.parts) * int((bound_s * DRIFT + STARTS_SLACK_S) * per_s)


def device_fault(event: UsageEvent, device: KnownDevice, at: float) -> UsageFault | None:
    """Why an interval that was stored at `at` is more than the device has; None: it is not."""
    longest = _allowed_ns(at - device.since, DEVICE_SLACK_NS)
    return UsageFault.TOO_MUCH if device.ns + device_ns(event) > longest else None


def device_ns(event: UsageEvent) -> int:
    """The nanoseconds of a whole device that an interval stands for."""
    return (event.t1 - event.t0) * event.ppm // WHOLE_DEVICE


def _allowed_ns(elapsed_s: float, slack_ns: int) -> int:
    return int(max(0.0, elapsed_s) * NS_PER_S * DRIFT) + slack_ns


def _are_names(event: UsageEvent) -> bool:
    function, stage = hook_place(event.function)
    if is_companion(event.function) and not (stage and function and len(event.function) <= LONGEST_NAME):
        return False
    names = (event.tenant, event.app, function, event.version)
    texts = (event.id, event.slice, event.device, event.container, event.price)
    return (
        _is_name(event.node)
        and all(not name or _is_name(name) for name in names)
        and all(map(TEXT.fullmatch, texts))
        and bool(event.id and event.device)
        and len(event.device) <= 128 >= len(event.container)
        and len(event.slice) <= 128
        and len(event.price) <= 63
        and all(not name or _is_name(name) for name in (event.region, event.zone))
        and event.purchase in PURCHASES
        and (not event.tags or not tags_fault(event.tags))
    )


def _is_host(event: UsageEvent) -> bool:
    return 0 <= event.core_ppm <= MOST_HOST_PPM and 0 <= event.gib_ppm <= MOST_HOST_PPM


def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and _matches_name(text)  # what is cached is short


@lru_cache(8_192)
def _matches_name(text: str) -> bool:
    return NAME.fullmatch(text) is not None


def _is_time(event: UsageEvent, at: float) -> bool:
    return (
        0 <= event.t0 <= event.t1 <= MOST_NS
        and event.t1 - event.t0 <= LONGEST_NS
        and math.isfinite(event.ended_at)
        and event.ended_at <= at + CLOCK_SKEW_S
        and (not event.wall_ns or abs(event.wall_ns - event.ended_at * NS_PER_S) <= NS_PER_S)
    )


def _are_shares(shares: Iterable[CallShare]) -> bool:
    """Whether each can be. What thousands have in common is looked at once."""
    common: set[tuple[str, str, str]] = set()
    for share in shares:
        common.add((share.tenant, share.key, share.ended))
        if not (
            0 <= share.ns <= MOST_NS
            and 0 <= share.earlier <= MOST_NS
            and 0 < share.batch_size <= MOST_BATCH
            and CALL.fullmatch(share.call_id)
            and (not share.parent or CALL.fullmatch(share.parent))
            and (not share.tags or not tags_fault(share.tags))
            and (not share.units or _are_units(share.units))
        ):
            return False
    return all(
        _is_name(tenant) and (not key or CALL.fullmatch(key)) and len(ended) <= 16 and TEXT.fullmatch(ended)
        for tenant, key, ended in common
    )


def _are_units(units: dict[str, int]) -> bool:
    """Whether they can be: a newer agent may know further names."""
    return len(units) <= 16 and all(
        0 <= count <= MOST_UNITS and 0 < len(name) <= 32 and TEXT.fullmatch(name) for name, count in units.items()
    )
