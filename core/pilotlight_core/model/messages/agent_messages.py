"""Messages of calls, containers and nodes: tagged structs, msgpack on the wire.

Times on the wire are *remaining* or *elapsed* milliseconds (nanoseconds where metered), never instants: each process
adds them to its own monotonic clock on arrival. Every credit, grant and command has the epoch of its sender's lease; an
agent keeps the highest it has seen and refuses lower ones.

A node may be hostile: what it sends has the bounds of `bounded`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import (
    MOST_CONTAINERS,
    MOST_DEVICES,
    MOST_HELD,
    MOST_SLICES,
    Bytes,
    Count,
    Duration,
    Ppm,
    Rising,
    ShortText,
    StepTimes,
)
from pilotlight_core.model.devices import DeviceReport

STOP_GRACE_S = 30.0
"""How long a started call may go on, by default, that nobody wants any more: its caller left or its deadline passed,
its app was stopped, or its tenant disabled. Then its container is killed."""


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """The base of all messages: frozen, keyword-only, tagged by class name; unknown fields are ignored."""


# --- origin -> agent -------------------------------------------------------------------------------------------


class BodyRef(msgspec.Struct, frozen=True):
    """A one-time address at the origin's internal listener, of a large input or for a large answer."""

    url: str
    token: str
    size: int = 0


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
    """Chunks that a stream may be ahead of those the origin has passed on."""
    tell_start: bool = False
    """Whether to send `Started`. Optional, since silence never proves that a call has not started."""
    traceparent: str = ""


class Cancel(Message, frozen=True, kw_only=True):
    """The answer is not wanted any more: remove the call before its start or from its batch, or close its generator."""

    call_id: str = msgspec.field(name="call")
    reason: str = "cancelled"


class Window(Message, frozen=True, kw_only=True):
    """The origin has passed on all chunks up to and including `upto`."""

    call_id: str = msgspec.field(name="call")
    upto: int


class Reconcile(Message, frozen=True, kw_only=True):
    """The origin's live calls at a node: any other call of this gateway that the agent holds is an orphan."""

    gateway: str
    calls: tuple[str, ...] = ()
    grants: dict[str, int] = {}
    """call -> grant, of silent calls: for each one that it does not hold, the agent reports what became of it."""
    instance: str = ""
    """The incarnation that they were sent to; another one does not answer."""


CallControl = Cancel | Window

# --- agent -> origin -------------------------------------------------------------------------------------------


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


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """A call's metered share of its container's slice, in exact nanoseconds."""

    ns: Rising
    ppm: Ppm
    price: ShortText
    """The price id of the slice, such as "cpu" or "h100"."""
    batch_size: Count = 1


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


class Chunk(Message, frozen=True, kw_only=True):
    """One piece of a stream: `data` is the msgpack of the value, `seq` rises by one from 1."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    seq: Rising
    data: bytes


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
    frees: bool = True
    """Whether its slot is free again. If the home is another gateway, the agent also sends it a Credit."""

    @property
    def gpu_ms(self) -> float | None:
        """GPU-milliseconds that the start has taken; None: it was not metered."""
        return self.spent.ns / 1e6 * (self.spent.ppm / 1e6) if self.spent is not None else None


CallFrame = Refused | Started | Chunk | Ended

# --- agent -> home and controller ------------------------------------------------------------------------------


class ContainerState(StrEnum):
    BINDING = "binding"  # a blank (or a new sandbox) is bound to the version
    LOADING = "loading"  # the module is imported and @enter runs
    WARMING = "warming"  # runs representative shapes, then the check
    READY = "ready"  # sends credits for calls
    DRAINING = "draining"  # finishes its calls, accepts none
    PARKED = "parked"  # off the device, weights in host memory
    GONE = "gone"


class Credit(Message, frozen=True, kw_only=True):
    """One container's free slots: sent to all on every change of state and each second, to a home when a slot is free.

    Once it is newer than the home's last grant, `held` (the calls in its slots) replaces the home's own count.
    """

    container: ShortText
    version: ShortText
    tenant: ShortText
    node: ShortText
    instance: ShortText
    """The agent's incarnation: with a new one, everything of the old one is gone."""
    epoch: Rising
    """The highest home epoch that this agent has seen for the version."""
    seq: Rising
    """Rises with every credit of the incarnation."""
    state: ContainerState
    slots: Count
    held: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_HELD)] = ()
    function: ShortText = ""
    """`tenant:app.function`, from which the shard and its home follow."""
    timeline: StepTimes = {}
    """Milliseconds of each step of its start so far: bind, stage, load, warm, check."""
    reason: str = ""
    error: RemoteError | None = None
    batch_room: Count = 0
    """Items that fit into the batch being formed; such a container is preferred."""


class SliceKind(StrEnum):
    CPU = "cpu"  # a CPU slot
    GPU = "gpu"  # a whole GPU
    MIG = "mig"
    SHARE = "share"  # a bounded share of a GPU


class SliceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that a node offers. `id` is unique on the node; `ppm` is its part of its device."""

    id: ShortText
    kind: SliceKind
    device: ShortText
    ppm: Ppm
    price: ShortText
    gpu_type: ShortText = ""
    memory: Bytes = 0
    container: ShortText = ""


class HostShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a host: what one container is promised of it, or what a node has to promise in all."""

    cpu_millis: Count = 0
    """Thousandths of a core."""
    memory: Bytes = 0
    """Bytes."""


class ContainerReport(msgspec.Struct, frozen=True, kw_only=True):
    id: ShortText
    version: ShortText
    tenant: ShortText
    app: ShortText
    function: ShortText
    slice: ShortText
    state: ContainerState
    slots: Count
    running: Count
    age_s: Duration
    idle_s: Duration
    """Seconds since it last held a call; 0 while it holds one."""
    calls: Count = 0
    reason: str = ""
    timeline: StepTimes = {}
    memory_bytes: Bytes = 0
    host: HostShare = HostShare()
    """What it was promised of its host."""


class NodeReport(Message, frozen=True, kw_only=True):
    """A node's inventory and containers, the authoritative state for the controller and all gateways."""

    node: ShortText
    instance: ShortText
    seq: Rising
    region: ShortText
    zone: ShortText
    sandbox: ShortText
    slices: Annotated[tuple[SliceReport, ...], Meta(max_length=MOST_SLICES)] = ()
    containers: Annotated[tuple[ContainerReport, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    blanks: Annotated[dict[ShortText, Count], Meta(max_length=64)] = {}
    devices: Annotated[tuple[DeviceReport, ...], Meta(max_length=MOST_DEVICES)] = ()
    controller_epoch: Rising = 0
    draining: bool = False
    spot: bool = False
    """Whether the provider may take it away at short notice."""
    stopped: bool = False
    """Whether it is the last report of an agent that stops in order."""
    host: HostShare | None = None
    """What its containers may be promised of it, less the platform's reserve; None: not known, so not bounded."""


# --- home -> controller, and back ------------------------------------------------------------------------------


class Demand(Message, frozen=True, kw_only=True):
    """The load of a version's queue. Sent at once when calls begin to wait, then each 250 ms while they do."""

    version: str
    tenant: str
    gateway: str
    epoch: int
    queued: int
    oldest_ms: float
    running: int
    arrivals: int
    """Since this home's last Demand for the version."""
    service_ms: float = 0.0
    """A smoothed execution time of one call; 0: unknown."""
    edge: bool = False
    refused: bool = False
    """Whether a call was lately refused for lack of a container, and there still is none."""

    @property
    def waiting(self) -> int:
        """The calls that want room: those queued, and one for all that were refused for lack of a container."""
        return self.queued or int(self.refused)


class Shortage(Message, frozen=True, kw_only=True):
    """A version's calls wait for capacity that the fleet lacks. Sent each tick while this lasts."""

    version: str
    epoch: int
    reason: str
    never: bool = False
    """Whether the whole fleet could not hold it, even if it were free."""
    shut_down: bool = False
    """Whether nothing of the version is to run: its app was stopped, or its tenant disabled."""


# --- controller -> agent ---------------------------------------------------------------------------------------


class Bind(Message, frozen=True, kw_only=True):
    """Run a version on a slice, if it is free. Idempotent by container id. `neighbours`: others may share the slice."""

    epoch: int
    container: str
    version: str
    tenant: str
    manifest_sha256: str
    slice: str
    function: str = ""
    """`tenant:app.function`, for the credits of its start."""
    neighbours: bool = False
    host: HostShare = HostShare()
    """What placement promises it of the host; the agent keeps a sum of its own, and holds the manifest to it."""
    log_bytes_per_hour: int | None = None
    """What its tenant may log on the node; None: there is no limit."""


class Drain(Message, frozen=True, kw_only=True):
    """Accept no new calls, finish the present ones within `within_ms`, and stop."""

    epoch: int
    container: str
    within_ms: float
    reason: str = ""


class Stop(Message, frozen=True, kw_only=True):
    epoch: int
    container: str
    reason: str = ""


ContainerCommand = Bind | Drain | Stop


class CommandReply(Message, frozen=True, kw_only=True):
    ok: bool
    reason: str = ""
    """"stale_epoch", "slice_taken", "no_such_slice", "gone", "cannot_verify", …, if not ok."""
    epoch: int = 0
    """The highest controller epoch that the agent has seen."""


# --- origin -> home, and back ------------------------------------------------------------------------------------


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
    """Whether it was admitted before, so that queue limits do not apply again."""
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
    timeline: dict[str, float] = {}
    """The steps of the start that it waited for, in ms."""
