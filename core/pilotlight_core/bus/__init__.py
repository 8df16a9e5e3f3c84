"""The bus: messages, streams, keys and values, leases. Only this package touches nats-py."""

from pilotlight_core.bus.bus import NO_RESPONDERS, Bus, BusStatistics, Handler, Notice, Subscription, connect
from pilotlight_core.bus.bus_errors import (
    BusDown,
    BusError,
    BusTimeout,
    KeyConflict,
    KeyExists,
    MessageTooLarge,
    NoResponders,
    StoreRefused,
    WrongRevision,
)
from pilotlight_core.bus.kv import Entry, Kv
from pilotlight_core.bus.lease import Holder, Lease, read_holder
from pilotlight_core.bus.mirror import Mirror
from pilotlight_core.bus.reader import Stored
from pilotlight_core.bus.streams import DEFAULT_LIMITS, StreamLimits

__all__ = [
    "DEFAULT_LIMITS",
    "NO_RESPONDERS",
    "Bus",
    "BusDown",
    "BusError",
    "BusStatistics",
    "BusTimeout",
    "Entry",
    "Handler",
    "Holder",
    "KeyConflict",
    "KeyExists",
    "Kv",
    "Lease",
    "MessageTooLarge",
    "Mirror",
    "NoResponders",
    "Notice",
    "StoreRefused",
    "Stored",
    "StreamLimits",
    "Subscription",
    "WrongRevision",
    "connect",
    "read_holder",
]
