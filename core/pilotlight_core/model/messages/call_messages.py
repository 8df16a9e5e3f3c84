"""Messages of calls: between origins and agents, and a call in its home's queue."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import (
    Bytes,
    Count,
    Duration,
    Ppm,
    Rising,
    ShortText,
    Units,
)
from pilotlight_core.model.engines.call_facts import CallFacts
from pilotlight_core.model.messages.call_affinity import CallAffinity
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_core.model.tracing.kept_call import BatchMates

WINDOW = 128
"""The most chunks that a stream may be ahead. With 32 it waits for its reader's word, and has half the pace."""
LEAST_AHEAD = 32
"""Chunks of any size. Of the largest (768 KiB) 24 MiB are under way."""
BYTES_AHEAD = 64 * 1024
"""Beyond LEAST_AHEAD: if all chunks were as large as the largest so far."""
GROUP_AT_MOST = 256
"""Rows of a group, and chunks of a row: more than agents send."""


class BodyRef(msgspec.Struct, frozen=True):
    """A one-time address at the origin's internal listener, of a large input or for a large answer."""

    url: str
    token: str
    size: int = 0


class ResumePoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a container begins a stream: at its beginning, or behind the events that an earlier container produced."""

    after: Rising = 0
    """The number of the last event that the state has in it; the next one is `after + 1`."""
    state: bytes = b""
    """The msgpack of the last checkpoint's state; b"": there was none."""
    sent: Rising = 0
    """The last event that the origin has relayed: those up to it are produced for the second time."""
    repeat_ms: Duration = 0.0
    """How long the events between took the first time: so much of their repetition is the operator's at most."""
    resumed: bool = False
    """Whether an earlier container had begun it."""
    is_last: bool = False
    """Whether it ends with this container, if that dies."""
    fell_silent: bool = msgspec.field(default=False, name="until_next")
    """Whether an earlier container went on behind `sent` when its node fell silent, nobody knows how far: what it did
    stays billed there, so all of `repeat_ms`, which has that time too, is repetition."""


class Run(Message, frozen=True, kw_only=True):
    """A granted call on its way to one container. `input` is the msgpack of the named arguments."""

    call_id: str = msgspec.field(name="call")
    tenant: str
    version: str
    container: str
    method: str
    epoch: int
    grant_number: int = msgspec.field(name="grant")
    """Rises with every grant of the call; an agent never runs the same (call, number) twice."""
    gateway: str
    """The origin: frames go to `subjects.reply(region, gateway)`."""
    home: str
    """The gateway that gets a credit as soon as the slot is free. If it is the origin, the agent sends none, since the
    origin informs its home."""
    start_within_ms: float
    """If it has not started by then, the agent refuses it as `expired`."""
    timeout_ms: float
    """What remains of the caller's deadline; the function's own timeout is in its spec."""
    input: bytes = b""
    body: BodyRef | None = None
    answer: BodyRef | None = None
    """Where to put an answer too large for a frame."""
    window: int = 256
    """The most chunks that a stream may be ahead of those the origin has passed on; see `chunks_ahead`."""
    tell_start: bool = False
    """Whether to send `Started`. Optional, since silence never proves that a call has not started."""
    traceparent: str = ""
    """Of its caller, with the tracestate behind a space where there is one; "": it begins a trace."""
    key: str = ""
    """The id of the API key that asked for the call, for the ledger."""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    """For the ledger; nothing sets them yet."""
    cold_ms: Duration = 0.0
    """How long the start of its container took, for which it waited; 0: it waited for none."""
    shadow: bool = False
    """Its answer is dropped, and its tenant pays nothing of it."""
    parent: str = ""
    """The id of the call that made this one, for the ledger; "": it came from outside."""
    resume: ResumePoint | None = None
    """Of a resumable stream, whose checkpoints the agent passes on; None: it is none."""
    facts: CallFacts | None = None
    """For the engine that runs it; None: the function has none."""
    lost_ms: Duration = 0.0
    """How long it was on a node that fell silent, at the most, where it stays billed: so much of it is the operator's
    now, at the most."""
    groups: bool = False
    """Whether its gateway reads the chunks of a stream in a `ChunkGroup`; those of before do not."""


class Cancel(Message, frozen=True, kw_only=True):
    """The answer is not wanted any more: remove the call before its start or from its batch, or close its generator."""

    call_id: str = msgspec.field(name="call")
    reason: str = "cancelled"


class Window(Message, frozen=True, kw_only=True):
    """The origin has passed on all chunks up to and including `upto`; said for each LEAST_AHEAD chunks, of large ones
    for each half of so many."""

    call_id: str = msgspec.field(name="call")
    upto: int
    movable: bool | None = None
    """Of a resumable stream, when that changes: whether its origin has what another container needs to go on."""
    again: bool = False
    """Whether chunks behind `upto` were lost on their way: the agent sends what it has kept again, and the end, if it
    was told. One of before does nothing, and the origin gives the stream up after a while."""


def chunks_ahead(window: int, largest: int) -> int:
    """How many chunks a stream with the given `window` may be ahead, whose largest so far has `largest` bytes."""
    if largest * window <= BYTES_AHEAD:
        return window
    return min(window, max(LEAST_AHEAD, BYTES_AHEAD // largest))


class Reconcile(Message, frozen=True, kw_only=True):
    """The origin's live calls at a node: any other call of this gateway that the agent holds is an orphan."""

    gateway: str
    calls: tuple[str, ...] = ()
    grants: dict[str, int] = msgspec.field(default_factory=dict)
    """call -> grant, of silent calls: for each one that it does not hold, the agent reports what became of it."""
    instance: str = ""
    """The incarnation that they were sent to; another one does not answer."""


CallControl = Cancel | Window


class Refusal(StrEnum):
    """Why an agent refused a granted call. It never started, and may go elsewhere uncharged."""

    STALE_EPOCH = "stale_epoch"  # a newer home has sent messages
    NO_SLOT = "no_slot"  # the container is full
    DRAINING = "draining"
    GONE = "gone"  # no such container here
    EXPIRED = "expired"  # it could not start in time
    DUPLICATE = "duplicate"  # this grant was seen before
    UNREADABLE = "unreadable"  # its body could not be fetched


class Outcome(StrEnum):
    OK = "ok"
    RAISED = "raised"  # the function raised
    LOAD_FAILED = "load_failed"  # its container could not be made ready
    TIMEOUT = "timeout"  # it ran past its timeout and its container was killed
    DIED = "died"  # its container died
    CANCELLED = "cancelled"
    BAD_INPUT = "bad_input"  # its arguments pass the schema but not its type hints
    BAD_OUTPUT = "bad_output"  # its result has no encoding


MISCONFIGURED = "Misconfigured"
"""The `type` of an error that the operator has to mend, not the function's owner."""


class RemoteError(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str
    message: str
    traceback: str = ""


def is_misconfigured(error: RemoteError | None) -> bool:
    """Whether an error is the operator's to mend."""
    return error is not None and error.type == MISCONFIGURED


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call's metered share of its container's slice, in exact nanoseconds."""

    ns: Rising
    ppm: Ppm
    price: ShortText
    """The price id of the slice, such as "cpu" or "h100"."""
    batch_size: Count = 1
    core_ppm: Count = 0
    """Millionths of a core that it paid for beside the slice in this time."""
    gib_ppm: Count = 0
    """Millionths of a GiB of host memory."""
    purchase: ShortText = ""
    """How its node was bought, a `Purchase`; "": on demand."""
    fault: Fault = Fault.NONE
    """PLATFORM: the tenant pays nothing of it: its container was ended for no reason of the tenant, or its answer is
    dropped."""
    starts: tuple[Rising, ...] = ()
    """At the origin, of several starts on slices of one kind: the nanoseconds of each but those that are resumed."""
    resumed: bool = False
    """It is the rest of a stream that began in another container, which was billed for the least of a start."""


def lack_ns(spent: Spent, least: int) -> int:
    """What starts lack of the nanoseconds that each is billed for at least."""
    if not least or (spent.resumed and not spent.starts):
        return 0
    return sum(least - ns for ns in spent.starts or (spent.ns,) if ns < least)


class Stages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Durations between the agent's acceptance and its answer, in ms of the agent's clock."""

    fetch_ms: Duration = msgspec.field(default=0.0, name="fetch")
    batch_wait_ms: Duration = msgspec.field(default=0.0, name="batch_wait")
    execute_ms: Duration = msgspec.field(default=0.0, name="execute")
    total_ms: Duration = msgspec.field(default=0.0, name="total")
    """Acceptance to answer; the rest of what the origin measures is transport."""


class Refused(Message, frozen=True, kw_only=True):
    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    container: str
    reason: Refusal


class Started(Message, frozen=True, kw_only=True):
    """The container has begun to execute the call; sent if `Run.tell_start`."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    nth: Count = 0
    """Of the calls that its container has begun, from 1; 0: its agent is one of before."""
    batch: Count = 0
    """Of the batches of its container, from 1; 0: it runs alone."""
    price: ShortText = ""
    """The price id of its slice."""


class Chunk(Message, frozen=True, kw_only=True):
    """One piece of a stream: `data` is the msgpack of the value, `seq` rises by one from 1."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    seq: Rising
    data: bytes


class ChunkRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Chunks of one stream that follow each other."""

    call_id: str
    grant_number: int
    seq: Rising
    """Of the first one."""
    data: Annotated[tuple[bytes, ...], Meta(max_length=GROUP_AT_MOST)]


class ChunkGroup(Message, frozen=True, kw_only=True):
    """What the streams of one gateway's calls had in one turn of the agent's loop, each in order."""

    rows: Annotated[tuple[ChunkRow, ...], Meta(max_length=GROUP_AT_MOST)]


class StreamCheckpoint(Message, frozen=True, kw_only=True):
    """The function has saved its state, in which all chunks up to `seq` are. Sent in order with the chunks."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    seq: Rising
    state: bytes
    """The msgpack of the state."""


class Ended(Message, frozen=True, kw_only=True):
    """The last frame of a call."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    container: str
    outcome: Outcome
    started: bool = True
    """False: it never began, so it may go elsewhere."""
    output: bytes = b""
    answer_size: Bytes = 0
    """Not 0: the answer is at the origin's internal listener, and `output` is empty."""
    error: RemoteError | None = None
    reason: str = ""
    """For people: "memory limit of 2.0 GiB", "exit code 139"."""
    last_seq: Rising = 0
    spent: Spent | None = None
    stages: Stages = Stages()
    units: Units | None = None
    """What the function counted of the call, by `CallUnit`."""
    frees: bool = True
    """Whether its slot is free again. If the home is another gateway, the agent also sends it a Credit."""
    preempted: bool = False
    """Of DIED: its node is taken away, and its agent has ended it in time. `spent` is what its tenant pays of the part.
    Gateways of before take it for any other death."""
    mates: BatchMates = ()
    """Of a batch, the other calls in it, if somebody may ask about this one: its trace is sampled, it has failed, or
    its batch took long."""
    by_tenant: bool = False
    """Of DIED: its function's own doing, such as its exit or its memory; what a stream then repeats is its tenant's."""
    nth: Count = 0
    """As in `Started`; 0 also: it never began."""
    batch: Count = 0
    """As in `Started`."""

    @property
    def gpu_ms(self) -> float | None:
        """GPU-milliseconds that the start has taken; None: it was not metered."""
        return self.spent.ns / 1e6 * (self.spent.ppm / 1e6) if self.spent is not None else None


CallFrame = Refused | Started | Chunk | StreamCheckpoint | Ended


class CallDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a call in its home's queue: everything but its body."""

    call_id: str = msgspec.field(name="call")
    tenant: str
    version: str
    method: str
    priority: str
    cost: float
    age_ms: float = 0.0
    remaining_ms: float = 0.0
    gateway: str = ""
    function: str = ""
    """`tenant:app.function` of the owner: versions of one function share their fairness counters."""
    grant_number: int = msgspec.field(default=0, name="number")
    """The number of the last grant that the origin has seen; the next is higher."""
    admitted: bool = False
    """Whether its origin has sent it to a home before, which may be gone: queue limits do not apply again.

    A home answers nothing to a call that it lets in, so what has waited there and what never came look alike. To refuse
    calls that waited for their turn would be worse than a queue that is too long by what was on its way to a dead home.
    """
    weight: float = 1.0
    """The share of its tenant among competing tenants: its own weight times its tier's. More than 0."""
    tier_rank: int = 0
    """Of its tenant's tier: under pressure the lowest is shed first."""
    reserved: float = 0.0
    """The part of the function's capacity, 0 to 1, reserved for calls of its tier."""
    queue_calls: int = 0
    """The most calls of its tenant and class that may wait for the function; 0: the home's own limit."""
    queue_ms: float = 0.0
    """The longest time in the queue; 0: the home's own limit."""
    affinity: CallAffinity | None = None
    """Of a call of an engine; None: any container is as good."""
    split: int = -1
    """The revision of its app's rollouts by which its version was chosen, 0: none was known; -1: it was named."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The home's permission for one call to go to one container."""

    call_id: str = msgspec.field(name="call")
    container: str
    node: str
    instance: str
    epoch: int
    grant_number: int = msgspec.field(name="number")
    gateway: str = ""
    """The origin, the only one that may use it."""
    home: str = ""
    """`Run.home`: the home if calls wait there for the slot, else the origin."""
    start_ms: float = 0.0
    """How long the call waited while no container of its version was ready."""
    timeline: dict[str, float] = msgspec.field(default_factory=dict)
    """The steps of the start that it waited for, in ms."""
    ahead: int = 0
    """How many calls waited for the version when it came to its home."""
