"""What agents tell of their nodes and containers, and the controller's commands to them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.bounded import (
    MOST_BASES,
    MOST_CONTAINERS,
    MOST_DEVICES,
    MOST_ENVIRONMENTS,
    MOST_FEATURES,
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
from pilotlight_core.model.messages.call_messages import RemoteError
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.usage_facts import Purpose

MOST_BLANK_SIZES = 1_024
"""Base environments times kinds of slices of one node."""
STOP_GRACE_S = 30.0
"""How long a started call may go on, by default, that nobody wants any more: its caller left or its deadline passed,
its app was stopped, or its tenant disabled. Then its container is killed."""
UNPARKED = "unpark"
"""The one step in the timeline of a container that was parked and serves again: it says nothing of a start."""


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
    timeline: StepTimes = msgspec.field(default_factory=dict)
    """Milliseconds of each step of its start so far: bind, stage, load, warm, check."""
    reason: str = ""
    error: RemoteError | None = None
    batch_room: Count = 0
    """Items that fit into the batch being formed; such a container is preferred."""
    preempted: bool = False
    """Whether it ends since its node is taken away: so do calls of whose end nothing is heard."""
    spare: Count = 0
    """Of `slots`, those for flows that hold less than their part of the others."""
    pressure: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """How full its engine's room for keys and values is."""


class SliceKind(StrEnum):
    CPU = "cpu"  # a CPU slot
    GPU = "gpu"  # a whole GPU
    MIG = "mig"
    SHARE = "share"  # a bounded share of a GPU


class SliceReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A slice that a node offers. `id` is unique on the node; `ppm` is its part of its device."""

    id: ShortText
    kind: SliceKind
    device: ShortText
    ppm: Ppm
    price: ShortText
    gpu_type: ShortText = ""
    memory: Bytes = 0
    container: ShortText = ""
    blank: ShortText = ""
    """The base environment of the blank that is ready on this slice of a GPU; "": there is none."""


class HostShare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A part of a host: what one container is promised of it, or what a node has to promise in all."""

    cpu_millis: Count = 0
    """Thousandths of a core."""
    memory: Bytes = 0
    """Bytes."""


class SandboxCeilings(msgspec.Struct, frozen=True, kw_only=True):
    """The most that one container of a node may have of what functions ask for by `shm`, `scratch` and `pids`."""

    shm: Bytes
    scratch: Bytes
    pids: Count


class HostMemory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The host memory that a node keeps for what may be needed again soon, beside what its containers are promised."""

    total: Bytes
    """Bytes; 0: nothing is parked there, and no weights are kept."""
    parked: Bytes = 0
    """Of parked containers."""
    cached: Bytes = 0
    """Of weights."""


class ContainerReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
    timeline: StepTimes = msgspec.field(default_factory=dict)
    memory_bytes: Bytes = 0
    host: HostShare = HostShare()
    """What it was promised of its host."""
    unfit: bool = False
    """Whether a check that it ran while it was ready has failed: it ends, and so would the next one."""
    guessed: bool | None = None
    """Whether it is there by the platform's guess, and has begun no call since; None: an agent of before."""
    secrets: ShortText = ""
    """Names the values of secrets that it was loaded with (`SecretsAnswer.revision`); "": none, or it has not yet."""
    network: Annotated[int, Meta(ge=0)] = 0
    """What it is let out to of `network=` of its version, as `mark_given` counts it."""
    parks: ShortText = ""
    """Where it can be parked, and unparked again: "any" CPU slot of its node, or its own slice; "": nowhere."""
    engine: EngineReport | None = None
    """How its engine was when it last told; None: it has none, or has told nothing."""
    cpu_ms: Count = 0
    """What its processes have used of processors since it started; 0: nobody counts it."""
    throttled_ms: Count = 0
    """How long they were kept from processors, since they had used what they may, or since others had them."""


class EndedContainer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A container that has ended lately."""

    id: ShortText
    version: ShortText
    tenant: ShortText
    was_ready: bool = False
    """Whether its start had succeeded."""
    unfit: bool = False
    """Whether a check that it ran while it was ready has failed."""


MOST_WEIGHTS_TOLD = 1_024


class WeightsReport(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Weights that were pushed and lie on a node's disk."""

    tenant: ShortText
    digest: ShortText
    size: Bytes
    """Of all files."""
    resident: Bytes = 0
    """In the node's memory."""
    locked: bool = False
    """Whether they stay there; else the kernel may drop them when it needs the memory."""


class NoticeKind(StrEnum):
    PREEMPT = "preempt"  # the provider takes the node away at the deadline
    REBALANCE = "rebalance"  # it is more likely to than others are, and says so ahead


class NodeNotice(msgspec.Struct, frozen=True, kw_only=True):
    """What the provider of a node has said of its end."""

    kind: NoticeKind
    deadline: Duration = 0.0
    """When the node is gone, in unix seconds by its own clock; 0 of REBALANCE, which has none."""
    reason: ShortText = ""
    """For people."""


class BlankSize(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """So many blanks of a base environment on slices of one kind, as far as those are free."""

    base: ShortText
    count: Count
    gpu_type: ShortText = ""
    """As `SliceReport` has it; "": CPU slots."""
    memory: Bytes = 0
    """Of such a slice, by which MIG instances differ; 0 for CPU slots."""


class NodeReport(Message, frozen=True, kw_only=True, gc=False):
    """A node's inventory and containers, the authoritative state for the controller and all gateways."""

    node: ShortText
    instance: ShortText
    seq: Rising
    region: ShortText
    zone: ShortText
    sandbox: ShortText
    slices: Annotated[tuple[SliceReport, ...], Meta(max_length=MOST_SLICES)] = ()
    containers: Annotated[tuple[ContainerReport, ...], Meta(max_length=MOST_CONTAINERS)] = ()
    blanks: Annotated[dict[ShortText, Count], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    devices: Annotated[tuple[DeviceReport, ...], Meta(max_length=MOST_DEVICES)] = ()
    controller_epoch: Rising = 0
    draining: bool = False
    spot: bool = False
    """Whether the provider may take it away at short notice."""
    stopped: bool = False
    """Whether it is the last report of an agent that stops in order."""
    host: HostShare | None = None
    """What its containers may be promised of it, less the platform's reserve; None: not known, so not bounded."""
    bases: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_BASES)] = ()
    """The names of its base environments; none: an agent that has the one called "default"."""
    features: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_FEATURES)] = ()
    """What its agent can do: those of `manifest_codec.FEATURES` that it knows, sorted."""
    ceilings: SandboxCeilings | None = None
    """None: its agent knows no such limits, and lacks the feature."""
    ended: Annotated[tuple[EndedContainer, ...], Meta(max_length=MOST_CONTAINERS)] | None = None
    """Those of the last ten seconds; None: an agent of before, of whose containers only credits say that they ended."""
    revision: Rising = 0
    """That of the incarnation's last report if nothing is new but what moves (`report_revisions`), else higher; 0: an
    agent of before, of whose reports anything may be new."""
    blank_sizes: Annotated[tuple[BlankSize, ...], Meta(max_length=MOST_BLANK_SIZES)] | None = None
    """As it was commanded last; None: an agent of before, which knows no such command."""
    environments: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_ENVIRONMENTS)] = ()
    """What it has built of requirements, by `environment_id`; where it is, containers start without a build."""
    clock: Duration = 0.0
    """When it was made, in unix seconds by its node's clock; 0: an agent of before, which does not say."""
    memory: HostMemory | None = None
    """None: its agent parks nothing."""
    weights: Annotated[tuple[WeightsReport, ...], Meta(max_length=MOST_WEIGHTS_TOLD)] = ()
    """Weights on its disk, the last used first."""
    notice: NodeNotice | None = None
    """What its provider has said of its end; None: nothing, or its agent does not ask."""
    pool: ShortText = ""
    """The pool that it was launched in; "": none."""
    provider_id: ShortText = ""
    """The machine's name by its provider, as its agent was told; shown, and decided on by nobody."""


class RenewNode(Message, frozen=True, kw_only=True):
    """A joined node's agent will connect with this key from now on; the one before opens until the next renewal."""

    key: ShortText


class NodeRenewal(Message, frozen=True, kw_only=True):
    """Until when the node's identity holds, or why it is not renewed."""

    expires_at: float = 0.0
    reason: str = ""


class Shortage(Message, frozen=True, kw_only=True):
    """A version's calls wait for capacity that the fleet lacks. Sent each tick while this lasts."""

    version: str
    epoch: int
    reason: str
    never: bool = False
    """Whether the whole fleet could not hold it, even if it were free."""
    shut_down: bool = False
    """Whether nothing of the version is to run: its app was stopped, or its tenant disabled."""
    room_ms: float = 0.0
    """When a place is expected, from now; 0: not known. A call with less time, and without a container, may leave."""


class Shortages(Message, frozen=True, kw_only=True):
    """Those that are due at a tick. To gateways of release 0.1 each `Shortage` is told alone."""

    items: tuple[Shortage, ...]


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
    purpose: Purpose = Purpose.CALL
    """Why it is started, for the ledger; `Keep` changes it."""
    core_ppm: Count = 0
    """As its binding has it: millionths of a core that it pays for beside its slice."""
    gib_ppm: Count = 0
    """As its binding has it: millionths of a GiB of host memory that it pays for."""
    network: tuple[str, ...] = ()
    """What its tenant allows of what its manifest asks for; the agent gives no more than both name."""
    evidence: EvidenceInfo | None = None
    """The documents about the version, which the agent verifies; None: there are none."""


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


class Keep(Message, frozen=True, kw_only=True):
    """From now on the container is there for `purpose`, as if it had begun no call: the ledger needs to know."""

    epoch: int
    container: str
    purpose: Purpose


class KeepBlanks(Message, frozen=True, kw_only=True):
    """From now on keep so many blanks, and none of what is not named."""

    epoch: int
    sizes: Annotated[tuple[BlankSize, ...], Meta(max_length=MOST_BLANK_SIZES)]


class Prefetch(Message, frozen=True, kw_only=True):
    """Fetch a version that was just deployed, if that can be done: it may be bound here soon."""

    epoch: int
    version: str
    tenant: str
    manifest_sha256: str


class Park(Message, frozen=True, kw_only=True):
    """Have an idle container leave its slice, and keep its process and memory. Where that fails, it drains."""

    epoch: int
    container: str
    likelihood: float = 1.0
    """How likely a call of its function is in the next minute: what is worth least goes first."""


class Unpark(Message, frozen=True, kw_only=True):
    """Have a parked container serve again, on this slice of its node."""

    epoch: int
    container: str
    slice: str
    purpose: Purpose = Purpose.CALL
    """Why it is there from now on."""


ContainerCommand = Bind | Drain | Stop | Keep | Park | Unpark


GIVING_WAY = "giving_way"
"""Why a bind is refused that ends what another tenant has parked on its slice: it is taken once that is gone."""


class CommandReply(Message, frozen=True, kw_only=True):
    ok: bool
    reason: str = ""
    """"stale_epoch", "slice_taken", "giving_way", "no_such_slice", "gone", "cannot_verify", …, if not ok."""
    epoch: int = 0
    """The highest controller epoch that the agent has seen."""
