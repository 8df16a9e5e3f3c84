"""Sorts deliveries of the usage stream: what the ledger takes, what it has already, and what goes into quarantine.

Pure but for `read_known`: the rows that deliveries may touch are read before, and written after in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from pilotlight_core.bus import Undecodable
from pilotlight_core.model.ids import tags_fault
from pilotlight_core.model.messages.bindings import Binding, Bound, Unbound
from pilotlight_core.model.messages.usage import UsageBatch, UsageEvent
from pilotlight_gateway.ledger.bulk_rows import rows_among
from pilotlight_gateway.ledger.ledger_entries import as_json
from pilotlight_gateway.ledger.ledger_tables import bound_container, known_device, lease_line
from pilotlight_gateway.ledger.usage_checks import (
    MOST_DEVICES,
    BoundContainer,
    KnownDevice,
    UsageFault,
    binding_fault,
    device_fault,
    device_ns,
    fault_of,
    starts_in,
)
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery

BOUND_FIELDS = tuple(each.name for each in fields(BoundContainer))
DEVICE_FIELDS = tuple(each.name for each in fields(KnownDevice))
"""Columns of their tables."""
TEXT_CHARACTERS = 2_000
SHARES_SHOWN = 3


class QuarantinedUsage(NamedTuple):
    """Usage that has no place in the ledger, and the beginning of its text."""

    seq: int
    at: float
    node: str
    reason: UsageFault
    text: str


@dataclass(kw_only=True)
class KnownUsage:
    """The ledger's rows that deliveries may touch."""

    nodes: dict[str, str] = field(default_factory=dict)
    """Event id -> its node."""
    bound: dict[str, BoundContainer] = field(default_factory=dict)
    devices: dict[tuple[str, str], KnownDevice] = field(default_factory=dict)
    """Of every node that is named: all its devices."""


@dataclass(kw_only=True)
class SortedUsage:
    """What becomes of deliveries. `known` has the rows as they are to be written."""

    known: KnownUsage
    fresh: list[UsageEvent] = field(default_factory=list)
    quarantined: list[QuarantinedUsage] = field(default_factory=list)
    unread: list[UsageDelivery] = field(default_factory=list)
    """Messages that this release cannot read."""
    repeated: int = 0
    bound: set[str] = field(default_factory=set)
    """Containers whose rows have changed."""
    tags: dict[tuple[str, str], str] = field(default_factory=dict)
    """The tags of an owner's version, as a JSON object: the controller tells them, since nodes may tell any."""
    devices: set[tuple[str, str]] = field(default_factory=set)


def sort_usage(deliveries: Iterable[UsageDelivery], known: KnownUsage) -> SortedUsage:
    """Sort deliveries in their order. `known` is changed."""
    intake = _Intake(known)
    for delivery in deliveries:
        intake.take(delivery)
    return intake.sorted


def read_known(connection: sa.Connection, deliveries: Sequence[UsageDelivery]) -> KnownUsage:
    """Read the rows that these deliveries may touch."""
    events = [event for delivery in deliveries for event in _events_of(delivery)]
    containers = {event.container for event in events} | {
        delivery.message.container for delivery in deliveries if isinstance(delivery.message, Unbound)
    }
    containers |= {d.message.binding.container for d in deliveries if isinstance(d.message, Bound)}
    known = KnownUsage()
    ids = lease_line.c.id
    for row in rows_among(connection, sa.select(ids, lease_line.c.node), ids, _keys(events)):
        known.nodes[row[0]] = row[1]
    known.bound = read_bound(connection, containers)
    senders = _storable({delivery.node for delivery in deliveries if delivery.sender is Sender.AGENT})
    for found in rows_among(connection, sa.select(known_device), known_device.c.node, senders):
        device = KnownDevice(**dict(zip(DEVICE_FIELDS, found, strict=True)))
        known.devices[device.node, device.device] = device
    return known


def read_bound(connection: sa.Connection, containers: Iterable[str]) -> dict[str, BoundContainer]:
    """Those of `containers` that were bound."""
    query = sa.select(*(bound_container.c[name] for name in BOUND_FIELDS))
    rows = rows_among(connection, query, bound_container.c.container, _storable(containers))
    return {row[0]: BoundContainer(**dict(zip(BOUND_FIELDS, row, strict=True))) for row in rows}


def values_of(row: BoundContainer | KnownDevice) -> dict[str, Any]:
    """A row as its table has it."""
    names = BOUND_FIELDS if isinstance(row, BoundContainer) else DEVICE_FIELDS
    return {name: getattr(row, name) for name in names}


class _Intake:
    def __init__(self, known: KnownUsage) -> None:
        self._known = known
        self.sorted = SortedUsage(known=known)
        self._devices_of: dict[str, int] = {}
        for node, _ in known.devices:
            self._devices_of[node] = self._devices_of.get(node, 0) + 1

    def take(self, delivery: UsageDelivery) -> None:
        match delivery.message:
            case UsageBatch(events=events) if delivery.sender is not Sender.CONTROLLER:
                for event in events:
                    self._take_event(event, delivery)
            case Bound(binding=binding) if self._is_controllers(delivery, binding.node):
                self._bind(binding, delivery.at)
            case Unbound(container=container, node=node) if self._is_controllers(delivery, node):
                self._end(container, delivery.at)
            case Undecodable():
                self.sorted.unread.append(delivery)
            case other:
                self._set_aside(delivery, UsageFault.NOT_ITS_PLACE, repr(other))

    def _take_event(self, event: UsageEvent, delivery: UsageDelivery) -> None:
        known = self._known.nodes.get(event.id)
        if known == event.node:
            self.sorted.repeated += 1
            return
        fault = UsageFault.REPEATED_ID if known is not None else fault_of(event, delivery)
        if fault is None and delivery.sender is Sender.AGENT:
            fault = self._bounds_fault(event, delivery)
        if fault is not None:
            self._set_aside(delivery, fault, _text_of(event))
            return
        self._known.nodes[event.id] = event.node
        self.sorted.fresh.append(event)

    def _bounds_fault(self, event: UsageEvent, delivery: UsageDelivery) -> UsageFault | None:
        """Check an interval against what is known of its container and device, and count it there if it fits."""
        device = self._device(event, delivery.at)
        if device is None:
            return UsageFault.TOO_MUCH
        bound = self._known.bound.get(event.container)
        if event.tenant and (fault := binding_fault(event, bound, delivery.metered_until)) is not None:
            return fault
        if (fault := device_fault(event, device, delivery.metered_until)) is not None:
            return fault
        if event.tenant and bound is not None:
            bound.ns += event.t1 - event.t0
            bound.starts += starts_in(event)
            self.sorted.bound.add(bound.container)
        device.ns += device_ns(event)
        self.sorted.devices.add((device.node, device.device))
        return None

    def _device(self, event: UsageEvent, at: float) -> KnownDevice | None:
        key = event.node, event.device
        device = self._known.devices.get(key)
        if device is None:
            count = self._devices_of.get(event.node, 0)
            if count >= MOST_DEVICES:
                return None
            self._devices_of[event.node] = count + 1
            device = self._known.devices[key] = KnownDevice(node=event.node, device=event.device, since=at)
        device.since = min(device.since, at)
        return device

    def _is_controllers(self, delivery: UsageDelivery, node: str) -> bool:
        return delivery.sender is Sender.CONTROLLER and delivery.node == node

    def _bind(self, binding: Binding, at: float) -> None:
        if binding.container in self._known.bound:
            return
        app, function = binding.app_and_function
        self._known.bound[binding.container] = BoundContainer(
            container=binding.container,
            node=binding.node,
            tenant=binding.tenant,
            app=app,
            function=function,
            version=binding.version,
            slice=binding.slice,
            ppm=binding.ppm,
            price=binding.price,
            bound_at=at,
            core_ppm=binding.core_ppm,
            gib_ppm=binding.gib_ppm,
            slots=binding.slots,
            max_units=as_json(binding.max_units) if binding.max_units else None,
            region=binding.region or None,
            purchase=binding.purchase or None,
        )
        self.sorted.bound.add(binding.container)
        if binding.tags and not tags_fault(binding.tags):
            self.sorted.tags.setdefault((binding.tenant, binding.version), as_json(binding.tags))

    def _end(self, container: str, at: float) -> None:
        bound = self._known.bound.get(container)
        if bound is not None and bound.ended_at is None:
            bound.ended_at = at
            self.sorted.bound.add(container)

    def _set_aside(self, delivery: UsageDelivery, reason: UsageFault, text: str) -> None:
        self.sorted.quarantined.append(quarantined(delivery, reason, text))


def quarantined(delivery: UsageDelivery, reason: UsageFault, text: str = "") -> QuarantinedUsage:
    """A delivery, or a part of it, on its way into quarantine."""
    return QuarantinedUsage(delivery.seq, delivery.at, delivery.node, reason, shown(text or repr(delivery.message)))


def unreadable(delivery: UsageDelivery) -> QuarantinedUsage:
    """A message that cannot be read, and is not kept for a release that can, on its way into quarantine."""
    unread: Undecodable = delivery.message
    return quarantined(delivery, UsageFault.UNREADABLE, f"{unread.error}: {unread.data[:TEXT_CHARACTERS]!r}")


def shown(text: str) -> str:
    """The beginning of a text. A terminal shows it, and a database keeps it: neither must find control characters."""
    return "".join(c if " " <= c <= "~" else f"\\u{ord(c):04x}" for c in text[:TEXT_CHARACTERS])


def _text_of(event: UsageEvent) -> str:
    short = msgspec.structs.replace(event, shares=event.shares[:SHARES_SHOWN])
    return repr(short)


def _events_of(delivery: UsageDelivery) -> Sequence[UsageEvent]:
    return delivery.message.events if isinstance(delivery.message, UsageBatch) else ()


def _keys(events: Iterable[UsageEvent]) -> list[str]:
    return _storable({event.id for event in events})


def _storable(names: Iterable[str]) -> list[str]:
    """Names that a row may have: a database refuses others even in a question."""
    return [name for name in names if name and len(name) <= 255 and name.isascii() and name.isprintable()]
