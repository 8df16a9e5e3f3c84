"""What the processes say to each other: closed families of tagged structs, msgpack on the wire.

Times on the wire are *remaining* or *elapsed* milliseconds (or nanoseconds where metered), never instants: each
process re-anchors them on its own monotonic clock when they arrive. Every credit, grant and command carries the epoch
of the lease under which its sender acts; an agent keeps the highest it has seen and refuses what is older.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.devices import DeviceReport


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=True, omit_defaults=True):
    """The base of all messages: frozen, keyword-only, tagged by class name; unknown fields are ignored."""


# --- origin -> agent -------------------------------------------------------------------------------------------


class BodyRef(msgspec.Struct, frozen=True):
    """Where the agent fetches a large input, or leaves a large answer: one-time, at the origin's internal listener."""

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
    """Of the home that granted it."""
    grant_number: int = msgspec.field(name="grant")
    """Rises with every grant of this call; an agent never runs (call, grant) twice."""
    gateway: str
    """The origin: frames go to `subjects.reply(region, gateway)`."""
    home: str
    """Who is told at once when its slot is free; the origin itself: nobody, it says so to its home."""
    start_within_ms: float
    """Not started by then: refuse it as `expired`."""
    timeout_ms: float
    """What remains of the caller's deadline; the function's own timeout is in its spec."""
    input: bytes = b""
    body: BodyRef | None = None
    answer: BodyRef | None = None
    """Where to put an answer too large for a frame."""
    window: int = 256
    """Chunks a stream may be ahead of what the origin has passed on."""
    tell_start: bool = False
    """Somebody wants to hear of its start. Nobody else needs to: silence never proves that a call has not started."""
    traceparent: str = ""


class Cancel(Message, frozen=True, kw_only=True):
    """Nobody wants the answer any more: remove it before start, drop it in a batch, close a generator."""

    call_id: str = msgspec.field(name="call")
    reason: str = "cancelled"


class Window(Message, frozen=True, kw_only=True):
    """The origin has passed on all chunks up to and including `upto`."""

    call_id: str = msgspec.field(name="call")
    upto: int


class Reconcile(Message, frozen=True, kw_only=True):
    """The origin's live calls at a node: what an agent holds for this gateway beyond them is orphaned."""

    gateway: str
    calls: tuple[str, ...] = ()
    grants: dict[str, int] = {}
    """call -> grant, of those not heard of for a while: the agent says what became of what it does not hold."""
    instance: str = ""
    """The agent's incarnation that they were sent to: another one knows nothing of them, and says nothing."""


CallControl = Cancel | Window

# --- agent -> origin -------------------------------------------------------------------------------------------


class Refusal(StrEnum):
    """Why an agent did not take a granted call. In every case it never started, and may go elsewhere uncharged."""

    STALE_EPOCH = "stale_epoch"  # a newer home has spoken
    NO_SLOT = "no_slot"  # the container is full
    DRAINING = "draining"  # it takes nothing new
    GONE = "gone"  # no such container here
    EXPIRED = "expired"  # it could not start in time
    DUPLICATE = "duplicate"  # this grant was seen before
    UNREADABLE = "unreadable"  # its body could not be fetched


class Outcome(StrEnum):
    """How a started call ended."""

    OK = "ok"
    RAISED = "raised"  # the function raised
    LOAD_FAILED = "load_failed"  # its container could not be made ready
    TIMEOUT = "timeout"  # it ran past its timeout and its container was killed
    DIED = "died"  # its container died under it
    CANCELLED = "cancelled"
    BAD_INPUT = "bad_input"  # its arguments pass the schema but not its type hints
    BAD_OUTPUT = "bad_output"  # what it returned cannot travel


class RemoteError(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exception of the tenant's code, as text."""

    type: str
    message: str
    traceback: str = ""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a call used, from the agent's meter: its share of the container's lease, in exact nanoseconds."""

    ns: int
    ppm: int
    price: str
    """The price id of the slice, such as "cpu" or "h100"."""
    batch_size: int = 1


class Stages(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the time went between the agent's acceptance and its answer, in ms of the agent's clock."""

    fetch: float = 0.0
    batch_wait: float = 0.0
    execute: float = 0.0
    total: float = 0.0
    """Acceptance to answer: what the origin's own stopwatch shows beyond it is transport."""


class Refused(Message, frozen=True, kw_only=True):
    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    container: str
    reason: Refusal


class Started(Message, frozen=True, kw_only=True):
    """The container has begun to work on the call; told where `Run.tell_start` asks for it."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")


class Chunk(Message, frozen=True, kw_only=True):
    """One piece of a stream: `data` is the msgpack of the value, `seq` rises by one from 1."""

    call_id: str = msgspec.field(name="call")
    grant_number: int = msgspec.field(name="grant")
    seq: int
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
    answer_size: int = 0
    """Not 0: the answer was left at the origin's internal listener instead of in `output`."""
    error: RemoteError | None = None
    reason: str = ""
    """For people: "memory limit of 2.0 GiB", "exit code 139"."""
    last_seq: int = 0
    spent: Spent | None = None
    stages: Stages = Stages()
    frees: bool = True
    """Its slot is free again (the agent says this by Credit too, where the home is another gateway)."""

    @property
    def gpu_ms(self) -> float | None:
        """GPU-milliseconds that the start has taken; None: it was not metered."""
        return self.spent.ns / 1e6 * (self.spent.ppm / 1e6) if self.spent is not None else None


CallFrame = Refused | Started | Chunk | Ended

# --- agent -> home and controller ------------------------------------------------------------------------------


class ContainerState(StrEnum):
    """The life of a container."""

    BINDING = "binding"  # a blank (or a new sandbox) takes the version
    LOADING = "loading"  # the module is imported and @enter runs
    WARMING = "warming"  # representative shapes, then the check
    READY = "ready"  # credits flow
    DRAINING = "draining"  # finishes what it holds, takes nothing
    PARKED = "parked"  # off the device, weights in host memory
    GONE = "gone"


class Credit(Message, frozen=True, kw_only=True):
    """One container's room: to all on every change of state and each second, to a home when a slot of its is free.

    Level-triggered: the home trusts `held`, not its own count, once the message is newer than its last grant.
    """

    container: str
    version: str
    tenant: str
    node: str
    instance: str
    """The agent's incarnation: a new one means that everything of the old one is gone."""
    epoch: int
    """The highest home epoch this agent has seen for the version."""
    seq: int
    """Rises with every credit of the incarnation."""
    state: ContainerState
    slots: int
    held: tuple[str, ...] = ()
    """The calls that occupy its slots."""
    function: str = ""
    """`tenant:app.function`: says which shard's home it is for."""
    timeline: dict[str, float] = {}
    """Milliseconds spent in each step of its start so far: bind, stage, load, warm, check."""
    reason: str = ""
    error: RemoteError | None = None
    """Why it could not be made ready."""
    batch_room: int = 0
    """Items that the batch now forming could still take: such a container is chosen first."""


class SliceKind(StrEnum):
    CPU = "cpu"  # a CPU slot
    GPU = "gpu"  # a whole GPU
    MIG = "mig"
    SHARE = "share"  # a bounded share of a GPU


class SliceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that a node offers. `id` is unique on the node; `ppm` is its part of its device."""

    id: str
    kind: SliceKind
    device: str
    ppm: int
    price: str
    gpu_type: str = ""
    memory: int = 0
    """Bytes of device memory (host memory for a CPU slot)."""
    container: str = ""
    """Who runs on it; "" is free."""


class ContainerReport(msgspec.Struct, frozen=True, kw_only=True):
    """One container as its agent, the truth, sees it."""

    id: str
    version: str
    tenant: str
    app: str
    function: str
    slice: str
    state: ContainerState
    slots: int
    running: int
    age_s: float
    idle_s: float
    """Seconds since it last held a call; 0 while it holds one."""
    calls: int = 0
    reason: str = ""
    timeline: dict[str, float] = {}
    memory_bytes: int = 0


class NodeReport(Message, frozen=True, kw_only=True):
    """A node's inventory and containers: the truth that the controller observes and everybody may list."""

    node: str
    instance: str
    seq: int
    region: str
    zone: str
    sandbox: str
    """"bubblewrap", or "process" where somebody asked for that by name."""
    slices: tuple[SliceReport, ...] = ()
    containers: tuple[ContainerReport, ...] = ()
    blanks: dict[str, int] = {}
    """base environment -> blanks ready."""
    devices: tuple[DeviceReport, ...] = ()
    """Its GPUs, cut or not."""
    controller_epoch: int = 0
    draining: bool = False
    spot: bool = False
    """It was bought to be taken away at short notice."""
    stopped: bool = False
    """The last report of an agent that ends in order."""


# --- home -> controller, and back ------------------------------------------------------------------------------


class Demand(Message, frozen=True, kw_only=True):
    """What a version's queue asks for. Sent at once when it becomes non-empty, then each 250 ms while it is."""

    version: str
    tenant: str
    gateway: str
    epoch: int
    queued: int
    oldest_ms: float
    running: int
    arrivals: int
    """Since the last Demand of this home for the version."""
    service_ms: float = 0.0
    """A smoothed execution time of one call; 0: unknown."""
    edge: bool = False


class Shortage(Message, frozen=True, kw_only=True):
    """A version's calls wait for capacity that is not there. Sent each tick while it is so."""

    version: str
    epoch: int
    reason: str
    never: bool = False
    """Nothing in the whole fleet could hold it, even if all were free."""


# --- controller -> agent ---------------------------------------------------------------------------------------


class Bind(Message, frozen=True, kw_only=True):
    """Run a version on a slice, if it is free. Idempotent by container id. `neighbours`: others may share it."""

    epoch: int
    container: str
    version: str
    tenant: str
    manifest_sha256: str
    slice: str
    function: str = ""
    """`tenant:app.function`, for the credits of its start."""
    neighbours: bool = False


class Drain(Message, frozen=True, kw_only=True):
    """Take nothing new, finish what is held within `within_ms`, then be gone."""

    epoch: int
    container: str
    within_ms: float
    reason: str = ""


class Stop(Message, frozen=True, kw_only=True):
    """Be gone now."""

    epoch: int
    container: str
    reason: str = ""


ContainerCommand = Bind | Drain | Stop


class CommandReply(Message, frozen=True, kw_only=True):
    ok: bool
    reason: str = ""
    """"stale_epoch", "slice_taken", "no_such_slice", "gone", "cannot_verify", … when not ok."""
    epoch: int = 0
    """The highest controller epoch that the agent has seen."""


# --- origin -> home, and back ------------------------------------------------------------------------------------


class CallDescriptor(msgspec.Struct, frozen=True, kw_only=True):
    """What a home queues: everything about a call but its body."""

    call_id: str = msgspec.field(name="call")
    tenant: str
    version: str
    method: str
    priority: str
    cost: float
    """Estimated GPU-milliseconds."""
    age_ms: float = 0.0
    remaining_ms: float = 0.0
    gateway: str = ""
    """The origin."""
    function: str = ""
    """`tenant:app.function` of the owner: versions of one function share their fairness counters."""
    grant_number: int = msgspec.field(default=0, name="number")
    """The number of the last grant that the origin has seen for the call; the next is higher."""
    admitted: bool = False
    """It was admitted before, so queue limits do not refuse it again."""
    weight: float = 1.0
    """The share of its tenant among tenants that compete: its own weight times its tier's. More than 0."""
    tier_rank: int = 0
    """Of its tenant's tier: under pressure the lowest gives way first."""
    reserved: float = 0.0
    """The part of the function's capacity, 0 to 1, that is kept for calls of its tier."""
    queue_calls: int = 0
    """Calls that its tenant may have waiting for the function, of one class; 0: as many as the home allows."""
    queue_ms: float = 0.0
    """The longest that it may wait in the queue; 0: as long as the home allows."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """The home's permission for one call to go to one container."""

    call_id: str = msgspec.field(name="call")
    container: str
    node: str
    instance: str
    epoch: int
    grant_number: int = msgspec.field(name="number")
    gateway: str = ""
    """The origin, which alone may use it."""
    home: str = ""
    """Of the run: the home if calls wait there for the slot, else the origin."""
    start_ms: float = 0.0
    """How long the call waited while no container of its version was ready."""
    timeline: dict[str, float] = {}
    """The steps of the start that it waited for, in ms."""
