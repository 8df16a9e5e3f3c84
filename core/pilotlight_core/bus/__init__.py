"""The bus: messages, streams, keys and values, leases. A library over NATS that knows nothing of the platform's
processes.

`bus` is a connection, made by `connect`; `client` is the one module that touches nats-py, `inbox` its requests and
`jetstream` its API. `kv` is a bucket, with `conflict_retry` for compare-and-set and `group_commit` for many writes at
once; `mirror` keeps a bucket in memory, `reader` follows a stream, rung by `doorbells`; `lease` is a fenced lease.
`streams` says which streams there are, `bus_users` who may do what on the bus, `bus_errors` what can go wrong.

Entered by every server process. Stands on `model` alone.
"""

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
from pilotlight_core.bus.conflict_retry import retry_conflicts
from pilotlight_core.bus.kv import Kv, KvEntry, NewValue
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
    "NewValue",
    "NoResponders",
    "Notice",
    "StoreRefused",
    "StreamLimits",
    "Subscription",
    "WrongRevision",
    "connect",
    "read_holder",
    "retry_conflicts",
]
