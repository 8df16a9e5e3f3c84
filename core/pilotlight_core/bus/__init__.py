"""The bus: messages, streams, keys and values, and leases, over NATS. It knows nothing of the platform's processes.

`connect` yields a `Bus`. `client` alone touches nats-py, which `nats_library` imports; `inbox` has requests,
`jetstream` the server's API. `kv` has buckets, `conflict_retry` and `group_commit` their writes; `mirror` keeps a
bucket in memory and `reader` follows a stream, both woken by `doorbells`; `lease` has fenced leases. `streams` lists
the streams, `bus_users` the permissions, `bus_errors` the errors. Used by every server process; imports `model` alone.
"""

from pilotlight_core.bus.bus import NO_RESPONDERS, Bus, BusStatistics, Handler, Notice, connect
from pilotlight_core.bus.bus_errors import (
    BusDown,
    BusError,
    BusIncomplete,
    BusTimeout,
    KeyConflict,
    KeyExists,
    MessageTooLarge,
    NoResponders,
    StoreRefused,
    WrongRevision,
)
from pilotlight_core.bus.client import Subscription
from pilotlight_core.bus.conflict_retry import retry_conflicts
from pilotlight_core.bus.kv import Kv, KvEntry, NewValue
from pilotlight_core.bus.lease import Lease, LeaseHolder, read_holder
from pilotlight_core.bus.mirror import Mirror
from pilotlight_core.bus.reader import DecodedMessage, Undecodable
from pilotlight_core.bus.streams import DEFAULT_LIMITS, StreamLimits

__all__ = [
    "DEFAULT_LIMITS",
    "NO_RESPONDERS",
    "Bus",
    "BusDown",
    "BusError",
    "BusIncomplete",
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
    "Undecodable",
    "WrongRevision",
    "connect",
    "read_holder",
    "retry_conflicts",
]
