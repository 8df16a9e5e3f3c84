"""What gateways say to each other about calls: origins to homes, homes to origins, and one to another about a call.

Each function belongs to one of 64 *shards*; a shard has one home at a time. Everything for one gateway that comes up in
one turn of the event loop travels as one message.
"""

from __future__ import annotations

import msgspec

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.agent_messages import (
    CallDescriptor,
    Grant,
    Message,
    Outcome,
    Refusal,
    RemoteError,
)

# --- origin -> home --------------------------------------------------------------------------------------------


class Enqueue(msgspec.Struct, frozen=True, tag=True):
    """Queue the call. Idempotent; repeated while nothing is heard. If refused: `Origin.refused_entry`."""

    call: CallDescriptor


class HandBack(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Grant `call.number` was not used up, put the call back where it was (`Home.refused`)."""

    call: CallDescriptor
    container: str
    epoch: int
    """Of the home that granted it."""
    reason: Refusal


class Settle(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The grant is over (`Home.done`)."""

    call_id: str = msgspec.field(name="call")
    container: str
    grant_number: int = msgspec.field(name="number")
    cost: float | None = None
    """GPU-milliseconds; None: unknown."""
    frees: bool = True
    outcome: Outcome | None = None
    """How it ended, for the breakers; None: unknown."""


class Withdraw(msgspec.Struct, frozen=True, tag=True):
    """Take the call out of the queue (`Home.cancel`)."""

    call_id: str = msgspec.field(name="call")


HomeItem = Enqueue | HandBack | Settle | Withdraw


class ToHome(Message, frozen=True, kw_only=True):
    """What one gateway has for the home of a shard. Whoever is not its home drops it: origins repeat themselves."""

    shard: int
    items: tuple[HomeItem, ...]


# --- home -> origin --------------------------------------------------------------------------------------------


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A call that leaves the queue with an error, or was not let in."""

    call_id: str = msgspec.field(name="call")
    gateway: str
    """The origin."""
    code: str
    detail: str
    error: RemoteError | None = None
    retry_after: float | None = None
    """Seconds after which another try may succeed."""
    limits: tuple[ReachedLimit, ...] = ()
    """Of the call's tenant, that are reached."""


class ToOrigin(Message, frozen=True, kw_only=True):
    """What one home has for an origin."""

    granted: tuple[Grant, ...] = ()
    dropped: tuple[Dropped, ...] = ()


# --- home -> agents --------------------------------------------------------------------------------------------


class CreditsWanted(Message, frozen=True, kw_only=True):
    """A home has begun and knows no rooms yet: agents repeat their credits now instead of within a second."""


# --- home -> all gateways --------------------------------------------------------------------------------------


class BreakerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One circuit breaker that is not closed, or counts failures."""

    version: str
    container: str = ""
    """"": the version's own, or of one tenant's calls to it."""
    tenant: str = ""
    state: str
    """closed, open or half_open."""
    failures: int
    """In a row."""
    retry_after: float = 0.0
    """Seconds until a probe may go."""


class Breakers(Message, frozen=True, kw_only=True):
    """All breakers of one gateway's homes that are worth a word; each second while there are any, and once after."""

    gateway: str
    told: tuple[BreakerReport, ...] = ()


# --- any gateway -> the one that has a call --------------------------------------------------------------------


class AskCall(Message, frozen=True, kw_only=True):
    """How is this call, and, with `cancel`, end it."""

    tenant: str
    call_id: str = msgspec.field(name="id")
    cancel: bool = False


class CallTold(Message, frozen=True, kw_only=True):
    """The answer to `AskCall`; without `status` there is no such call of this tenant here."""

    status: CallStatus | None = None
    cancelled: bool = False


# --- a home -> the next one ------------------------------------------------------------------------------------


class BreakerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A circuit breaker on its way to another home."""

    state: str
    failures: int
    trips: int = 0
    left: float = 0.0
    """Seconds until its pause, or the wait for its probe, is over."""
    probe: str = ""
    reason: str = ""


class VersionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a home has learnt of a version."""

    function: str
    tenant: str
    calls: int = 0
    """That the following was learnt of."""
    hold_ms: float | None = None
    spread_ms: float = 0.0
    cost: float | None = None
    start_ms: float | None = None
    breaker: BreakerState | None = None
    """For lost containers, of all callers; None: closed, and nothing was lost."""
    tenants: dict[str, BreakerState] = {}
    """The same of single callers."""
    lost: tuple[tuple[str, ...], ...] = ()
    """Whose calls the containers held that were lost in the present row."""
    containers: dict[str, BreakerState] = {}
    """Those whose breaker is not closed."""


class HomeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a home hands over: the calls that wait, in their order, the fairness counters, and what it has learnt."""

    calls: tuple[CallDescriptor, ...] = ()
    counters: dict[str, dict[str, dict[str, float]]] = {}
    """function -> class -> tenant -> service received."""
    versions: dict[str, VersionState] = {}
