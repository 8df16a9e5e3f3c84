"""The bus: messages, streams, keys and values, leases. Only this package touches nats-py."""

from pilotlight_core.bus.bus import NO_RESPONDERS, Bus, BusStatistics, Handler, Notice, connect
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
from pilotlight_core.bus.kv import Kv, KvEntry
from pilotlight_core.bus.lease import Lease, LeaseHolder, read_holder
from pilotlight_core.bus.mirror import Mirror
from pilotlight_core.bus.reader import DecodedMessage
from pilotlight_core.bus.streams import DEFAULT_LIMITS, StreamLimits
from pilotlight_core.bus.subscription import Subscription

__all__ = [
    "DEFAULT_LIMITS",
    "NO_RESPONDERS",
    "Bus",
    "BusDown",
    "BusError",
    "BusStatistics",
    "BusTimeout",
    "DecodedMessage",
    "Handler",
    "KeyConflict",
    "KeyExists",
    "Kv",
    "KvEntry",
    "Lease",
    "LeaseHolder",
    "MessageTooLarge",
    "Mirror",
    "NoResponders",
    "Notice",
    "StoreRefused",
    "StreamLimits",
    "Subscription",
    "WrongRevision",
    "connect",
    "read_holder",
]
