"""Messages between gateways: origins to homes, homes to origins, any gateway to a call's owner, and each to all.

Each function belongs to one of 64 *shards*; a shard has one home at a time. All items for one gateway from one turn of
the event loop travel as one message.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.bounded import Bytes, Count, Duration, Rising, ShortText
from pilotlight_core.model.limits import ReachedLimit
from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant, Outcome, Refusal, RemoteError
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.seeing.tallies import MOST_ASKED_FUNCTIONS, MOST_TOLD, GatewayTally, ToldTally
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_core.model.tracing.sampled_call import SampledGroup, SampledSheet

MOST_OF_BATCH = 256
"""Kept calls of one message: at a few KB each they fit one of the bus."""

# --- origin -> home --------------------------------------------------------------------------------------------


class Enqueue(msgspec.Struct, frozen=True, tag=True):
    """Queue the call. Idempotent, and repeated until an answer arrives; `Dropped` is a refusal."""

    call: CallDescriptor


class HandBack(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Put the call back into the queue, because its grant `call.number` was refused (`Home.refused`)."""

    call: CallDescriptor
    container: str
    epoch: int
    reason: Refusal


class Settle(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """End the grant (`Home.done`)."""

    call_id: str = msgspec.field(name="call")
    node: str
    """The node that says so: a home ends no grant for another one."""
    container: str
    grant_number: int = msgspec.field(name="number")
    cost: float | None = None
    """GPU-milliseconds; None: unknown."""
    frees: bool = True
    outcome: Outcome | None = None
    """How it ended, for the breakers; None: unknown."""


class Withdraw(msgspec.Struct, frozen=True, tag=True):
    call_id: str = msgspec.field(name="call")


HomeItem = Enqueue | HandBack | Settle | Withdraw


class ToHome(Message, frozen=True, kw_only=True):
    """Items for the home of a shard. A gateway that is not its home drops them; origins repeat theirs."""

    shard: int
    items: tuple[HomeItem, ...]


# --- home -> origin --------------------------------------------------------------------------------------------


class Dropped(msgspec.Struct, frozen=True, kw_only=True):
    """A call that leaves the queue with an error, or was refused by it."""

    call_id: str = msgspec.field(name="call")
    gateway: str
    code: str
    detail: str
    error: RemoteError | None = None
    retry_after: float | None = None
    """Seconds after which another try may succeed."""
    limits: tuple[ReachedLimit, ...] = ()
    """The call's tenant's limits that are reached."""
    version: str = ""
    """Whose queue it was: meanwhile the call may wait for another version, under the same id; "": of a home before."""


class ToOrigin(Message, frozen=True, kw_only=True):
    granted: tuple[Grant, ...] = ()
    dropped: tuple[Dropped, ...] = ()


# --- home -> agents --------------------------------------------------------------------------------------------


class CreditsWanted(Message, frozen=True, kw_only=True):
    """Ask agents for their credits at once, because a new home knows no containers yet."""


# --- home -> all gateways --------------------------------------------------------------------------------------


class BreakerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One circuit breaker that is not closed, or counts failures."""

    version: str
    container: str = ""
    """"": the breaker is the version's, or of one tenant's calls to it."""
    tenant: str = ""
    state: str
    """closed, open or half_open."""
    failures: int
    retry_after: float = 0.0
    """Seconds until a probe is allowed."""


class Breakers(Message, frozen=True, kw_only=True):
    """The reported breakers of one gateway's homes; sent each second while there are any, and once after."""

    gateway: str
    reports: tuple[BreakerReport, ...] = msgspec.field(default=(), name="told")


# --- gateway -> gateways ---------------------------------------------------------------------------------------


QUEUES_TOLD, FLOWS_TOLD = 64, 8


class FlowLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The waiting calls of one tenant and class at one version."""

    tenant: ShortText
    priority: ShortText
    queued: Count
    oldest_ms: Duration = 0.0


class QueueLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What waits and runs of one version at its home."""

    version: ShortText
    function: ShortText
    """`tenant:app.function`."""
    queued: Count = 0
    oldest_ms: Duration = 0.0
    """How long the first of them has waited."""
    running: Count = 0
    slots: Count = 0
    """Of the containers that take calls."""
    ready: Count = 0
    starting: Count = 0
    """Containers."""
    service_ms: Duration = 0.0
    """A smoothed execution time; 0: unknown."""
    shortage: ShortText = ""
    """Why there is no place for a container, as the controller says."""
    failed_starts: Count = 0
    """Containers that could not be loaded since one was ready."""
    breaker: ShortText = "closed"
    flows: Annotated[tuple[FlowLoad, ...], msgspec.Meta(max_length=FLOWS_TOLD)] = ()
    """Those that have waited for longest."""
    flows_left: Count = 0
    """Further ones."""


class SlowFlowLoad(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A flow that others slow down."""

    version: ShortText
    function: ShortText
    tenant: ShortText
    priority: ShortText
    slowdown: Duration
    calls: Count
    neighbour: ShortText
    """The tenant that holds most of the slots; "": none else does."""
    held_part: Duration = 0.0
    """Of the time in slots lately, that of its own calls."""
    neighbour_part: Duration = 0.0
    """... and that of the neighbour's."""
    mean_ms: Duration = 0.0
    """How long its calls take, on average over the last ones."""


class GatewayLoad(Message, frozen=True, kw_only=True):
    """The load of one gateway, every other second, and of the queues whose home it is."""

    gateway: ShortText
    """Its process; a new one after each start."""
    name: ShortText
    requests_per_s: Duration
    """HTTP requests that ended, on average over the last half minute."""
    loop_lag_s: Duration
    """How late its event loop is: 99 of 100 callbacks in the last half minute were at most so late."""
    body_bytes: Bytes
    """Of bodies that it holds in memory."""
    body_bytes_limit: Bytes
    """How many it may hold; beyond it refuses requests."""
    calls: Count = 0
    """Whose callers wait there."""
    clock: Duration = 0.0
    """When it was measured, in unix seconds by its own clock; 0: a gateway of before, which does not say."""
    queued: Count = 0
    """Calls that wait at its homes."""
    queues: Annotated[tuple[QueueLoad, ...], msgspec.Meta(max_length=QUEUES_TOLD)] = ()
    """Versions with calls or refusals: those whose calls have waited for longest."""
    queues_left: Count = 0
    """Further ones."""
    slow: Annotated[tuple[SlowFlowLoad, ...], msgspec.Meta(max_length=QUEUES_TOLD)] = ()


# --- any gateway -> the one that has a call --------------------------------------------------------------------


class AskCall(Message, frozen=True, kw_only=True):
    """Ask for the status of a call; with `cancel`, end it."""

    tenant: str
    call_id: str = msgspec.field(name="id")
    cancel: bool = False


class AskEvents(Message, frozen=True, kw_only=True):
    """Ask for the next events of a stream, as bytes; the gateway that has it waits a moment for some."""

    tenant: str
    call_id: str = msgspec.field(name="id")
    reader: str
    """Its random name: with another one the stream is taken over."""
    after: int = 0
    """The last event that the reader has; at its first question."""
    place: int = -1
    """Where it is, as the last answer said; -1: at its first question."""
    offset: int = 0


class StreamEvents(Message, frozen=True, kw_only=True):
    """The answer to `AskEvents`."""

    known: bool = True
    """False: the gateway has no such stream of this tenant."""
    gone: str = ""
    """Why events that were asked for cannot be had."""
    data: bytes = b""
    place: int = 0
    offset: int = 0
    """Where the reader is now."""
    is_over: bool = False
    """Nothing follows."""
    resume_s: float = 0.0


class CallReply(Message, frozen=True, kw_only=True, tag="CallTold"):
    """The answer to `AskCall`; without `status` the gateway has no such call of this tenant."""

    status: CallStatus | None = None
    cancelled: bool = False


# --- a home -> the next one ------------------------------------------------------------------------------------


class BreakerState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: str
    failures: int
    trips: int = 0
    left_s: float = msgspec.field(default=0.0, name="left")
    """Until its pause, or the wait for its probe, ends."""
    probe: str = ""
    reason: str = ""


class VersionState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    function: str
    tenant: str
    calls: int = 0
    """Number of calls behind the following estimates."""
    hold_ms: float | None = None
    spread_ms: float = 0.0
    cost: float | None = None
    start_ms: float | None = None
    breaker: BreakerState | None = None
    """For lost containers, of all callers; None: closed, without losses."""
    tenants: dict[str, BreakerState] = {}
    """The same per caller."""
    lost: tuple[tuple[str, ...], ...] = ()
    """The tenants of the calls on each container lost in the present row."""
    containers: dict[str, BreakerState] = {}
    """Containers whose breaker is not closed."""


class HomeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a home hands over: waiting calls in order, fairness counters, and learnt statistics."""

    calls: tuple[CallDescriptor, ...] = ()
    counters: dict[str, dict[str, dict[str, float]]] = {}
    """function -> class -> tenant -> service received."""
    versions: dict[str, VersionState] = {}


# --- kept calls: a gateway -> the duties, which export them, and any gateway -> each of the others --------------


class TraceBatch(Message, frozen=True, kw_only=True):
    """What a gateway has kept since the last one."""

    gateway: ShortText
    calls: Annotated[tuple[KeptCall, ...], Meta(max_length=MOST_OF_BATCH)] = ()
    sampled: Annotated[tuple[SampledGroup, ...], Meta(max_length=MOST_OF_BATCH)] = ()
    """And of ordinary ones that were sampled, by a gateway of an earlier release."""
    sheets: Annotated[tuple[SampledSheet, ...], Meta(max_length=MOST_OF_BATCH)] = ()
    """And by one of this."""


class AskKept(Message, frozen=True, kw_only=True):
    """Which calls of a tenant does this gateway still have?"""

    tenant: ShortText
    call_id: ShortText = ""
    """Only this one."""
    function: ShortText = ""
    """Only of this one, `tenant:app.function`."""
    kept: ShortText = ""
    """Only those kept for this reason."""
    limit: Count = 100


class KeptTold(Message, frozen=True, kw_only=True):
    """They, the newest first."""

    gateway: ShortText
    calls: Annotated[tuple[KeptCall, ...], Meta(max_length=MOST_OF_BATCH)] = ()


# --- any gateway -> each other one ------------------------------------------------------------------------------


class AskTallies(Message, frozen=True, kw_only=True):
    """What a gateway has counted."""

    functions: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_ASKED_FUNCTIONS)] = ()
    """Of these; empty: of all of `tenant`."""
    tenant: ShortText = ""
    """The owner of the functions; "" with no `functions`: of all."""
    since_ns: Rising = 0
    """The beginning of the window, which ends now: that of a minute, beyond the last hour that of ten."""
    step: Annotated[int, Meta(ge=0, le=1_440)] = 0
    """Minutes of each step; 0: the window is one."""
    totals: bool = False
    """Whether what was counted since the gateway began is wanted, of each function, instead of a window."""
    brief: bool = False
    """Whether only counts and durations are wanted: no stages, no samples."""


class TalliesTold(Message, frozen=True, kw_only=True):
    """The answer to `AskTallies`."""

    parts: Annotated[tuple[ToldTally, ...], Meta(max_length=MOST_TOLD)] = ()
    own: GatewayTally = GatewayTally()
    left_out: Count = 0
    """Parts that the answer had no room for: those of the functions with the fewest calls."""
