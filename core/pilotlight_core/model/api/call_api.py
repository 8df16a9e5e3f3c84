"""The bodies of the native HTTP API about calls, jobs, apps, usage and keys.

Requests forbid unknown fields, and the error names them. Responses may get more fields; readers ignore unknown ones.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pilotlight_core.model.ids import END
from pilotlight_core.model.spec import DEFAULT_BASE, ArtifactEntry, ArtifactInfo, FileEntry, FunctionSpec, Schedule

LONGEST_LIFE_S = 10 * 365 * 86_400.0
HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
LINE_PATTERN = f"^[^{HIDDEN}]*{END}"
"""Text without control characters, and without characters that hide or reorder others on a terminal."""
Scope = Annotated[str, Meta(pattern=f"^(invoke|deploy|read|admin|operator){END}")]
Life = Annotated[float, Meta(gt=0, le=LONGEST_LIFE_S)]
SIGNATURE_LENGTH = 4 * 2**20
"""Of what a signature's file has: that of ten thousand files."""
MOST_SIGNED = 40
"""The code, and artifacts."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of request bodies."""


class CallRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/functions/{ref}/calls`. `input` and `parameters` together are the named arguments."""

    input: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    method: str | None = None
    id: str | None = None
    """An id made by the client, `cid_` and 8 to 60 characters, by which the call can be cancelled before it is
    answered."""
    deadline_ms: float | None = None
    """How long the caller waits; default and maximum: the time to start the function, and its timeout for each try."""
    run_at: float | None = None
    """For a job (`Prefer: respond-async`): the earliest start, unix seconds. Default: now."""
    expires_in_s: float | None = None
    """For a job: how long it may wait for a container after `run_at`; default: a day."""
    keep_s: float | None = None
    """For a job: how long it is kept after its end; default and maximum: the platform's retention."""


class UsagePart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one price adds to a call's cost: the device's, that of cores (`cpu_core`) or of memory (`memory_gib`).

    `minimum` is what the call's starts lack of the least that one is billed; units that have a price are parts too.
    """

    price: str
    ppm: int
    """Millionths of a device, of a core, or of a GiB."""
    cost: str
    amount: int | msgspec.UnsetType = msgspec.UNSET
    """Of `minimum` the nanoseconds that were added, of units how many."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The billed usage of one call. `cost` is the sum of its parts, each exact dollars rounded to 12 places; the report
    sums unrounded costs."""

    gpu_ms: float
    ns: int
    """Of all starts that are billed."""
    ppm: int
    """Of the last start's slice, as `price`."""
    price: str
    cost: str
    currency: str = "USD"
    parts: tuple[UsagePart, ...] = ()
    """What the cost is made of; further ones of earlier starts on slices of other kinds."""
    batch_size: int = 1
    attempts: int = 1
    units: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    """What the function counted of the call with `pilotlight.count_units`, if it did."""
    discount: str | msgspec.UnsetType = msgspec.UNSET
    """What is not paid of each dollar of the list price, as `cost` and `parts` say it; unset: nothing."""


class Latency(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Milliseconds of the gateway's clock from the request's arrival to its answer, in total and by stage.

    The stages sum to `total_ms`: gateway (authenticate, parse, validate), queue (waiting for a container), start (the
    part of it in which a container was started for the call), transport, batch_wait, execute, respond.
    """

    total_ms: float
    stages: dict[str, float]


class CallResponse(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The answer to a unary call."""

    id: str
    output: Any
    version: str
    usage: Usage
    latency: Latency
    cold_start: dict[str, float] | None = None
    """The steps of the start that the call waited for, in ms; None: a container was ready."""
    request_id: str = ""
    fallback_for: str | msgspec.UnsetType = msgspec.UNSET
    """The version that was asked for, if that had no room and its fallback ran the call, which is `version`."""


class TypedResponse(CallResponse, frozen=True, kw_only=True):
    """The last event of a stream with values in msgpack: `output` is null."""

    output_b64: str | None = None


class CallStatus(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`GET /v1/calls/{id}`: queued, running, succeeded, failed or cancelled."""

    id: str
    state: str
    version: str
    age_ms: float
    client_id: str | None = None
    container: str | None = None
    error: dict[str, Any] | None = None


class JobStatus(CallStatus, frozen=True, kw_only=True):
    """The state of a durable call: queued, running, succeeded, failed, cancelled or expired. Times are unix seconds.

    For a live call, `GET /v1/calls/{id}` answers with the fields of CallStatus alone.
    """

    created_at: float = 0.0
    run_at: float = 0.0
    """The earliest start; for a retry, its time."""
    expires_at: float = 0.0
    started_at: float | None = None
    """Of the last attempt."""
    ended_at: float | None = None
    attempts: int = 0
    run: str | None = None
    """The id of the call of its last attempt, as in receipts, logs and events."""
    position: int | None = None
    """While it is queued: the number of jobs of this function, tenant and class before it, if known."""
    starts_in_s: float | None = None
    """While it is queued: an estimate from their present rate."""
    waits_for: str | None = None
    """While it is queued: the budget that has too little money for it, in words."""
    reason: str | None = None
    """Why it is dead: raised, interrupted, timeout, bad_input, bad_output, load_failed, undeliverable or expired."""
    redrives: int = 0
    tick: int | None = None
    """The tick of the function's schedule that it is, in unix seconds."""
    output: Any = msgspec.UNSET
    """Its result; left out in lists."""
    usage: Usage | None = None
    stages: dict[str, float] | None = None
    """Milliseconds of the successful attempt, as in Latency."""
    cold_start: dict[str, float] | None = None


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/jobs`: the last changed first. `next` is the cursor of the next page; null: there is none."""

    jobs: tuple[JobStatus, ...]
    next: str | None = None


class DeployFunction(Request, frozen=True, kw_only=True, omit_defaults=True):
    """One function of a deploy."""

    spec: FunctionSpec
    artifacts: tuple[str, ...] = ()
    """The names of those of the request's artifacts that it uses."""
    weights: tuple[str, ...] = ()
    """The weights that it uses of those that were pushed: `name`, of which the newest is taken, or `name@digest`."""


RunSeconds = Annotated[float, Meta(ge=10, le=3_600)]


class DeploySignature(Request, frozen=True, kw_only=True):
    """What the tenant has signed of a deploy."""

    of: Annotated[str, Meta(max_length=128)]
    """`code`, or the name of an artifact or of weights."""
    bundle: Annotated[str, Meta(max_length=SIGNATURE_LENGTH)]
    """A signature of model-signing by a key, as its file has it."""


class DeployRequest(Request, frozen=True, kw_only=True, omit_defaults=True):
    """`POST /v1/apps/{app}/deploys`: the whole content of an app.

    If `missing` in the answer is not empty, nothing was deployed: the client uploads the blobs (`PUT
    /v1/blobs/{sha256}`) and repeats the request.
    """

    functions: tuple[DeployFunction, ...]
    files: tuple[FileEntry, ...]
    message: str = ""
    base: str = DEFAULT_BASE
    """The base environment of its functions: one that nodes of the fleet have."""
    prune: bool = False
    """Take functions of the app that are not in this deploy out of service, instead of refusing it."""
    ends_in_s: RunSeconds | None = None
    """Make it a run: an app that is in no list, and is deleted after so many seconds unless it is renewed."""
    artifacts: tuple[ArtifactEntry, ...] = ()
    """Those that its functions use, each once."""
    requirements: tuple[str, ...] = ()
    """Packages that its functions find beside those of the base environment, such as "duckdb==1.3.0"."""
    no_traffic: bool = False
    """Register its versions, and leave what is deployed as it is: they run for pins, aliases and rollouts."""
    retry: bool = False
    """Put versions into service that a rollout has rolled back, which are refused otherwise."""
    signatures: Annotated[tuple[DeploySignature, ...], Meta(max_length=MOST_SIGNED)] = ()
    """By keys that the tenant has on record."""


class RenewRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/apps/{app}/renew`, of a run."""

    ends_in_s: RunSeconds


class DeployedFunction(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    """`app.function@v7`."""
    version_id: str
    endpoint: str
    changed: bool


class DeployLine(msgspec.Struct, frozen=True, kw_only=True):
    """A deploy in `GET /v1/apps/{app}/history`."""

    revision: int
    at: float
    by: str
    """The id of the API key that deployed it."""
    message: str
    functions: dict[str, str]
    """function -> version id."""
    versions: dict[str, str]
    """function -> `v7`; of a version that is not kept any more, its id."""
    traffic: bool = True
    """Whether it put its versions into service."""
    back_to: int = 0
    """Of a rollback: the revision whose versions it put back into service; 0: it is none."""


class DeployResponse(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    revision: int
    """Of the app. Without traffic and with nothing new, that of the deploy whose versions these are: rollouts name it.
    """
    missing: tuple[str, ...] = ()
    """Digests to upload first; if not empty, nothing was deployed."""
    functions: tuple[DeployedFunction, ...] = ()
    removed: tuple[str, ...] = ()
    """The functions that it took out of service."""
    warnings: tuple[str, ...] = ()
    """Parts of the request that were deployed but cannot take effect as requested."""
    notes: tuple[str, ...] = ()
    """What the platform has worked out for it, such as the memory of an engine."""


class ScheduleInfo(msgspec.Struct, frozen=True, kw_only=True):
    """When a function, or a method of it, runs by itself."""

    schedule: Schedule
    next_tick: int | None = None
    """Unix second; None: it does not run by itself as long as nobody deploys it anew."""


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One function of an app in `GET /v1/apps`."""

    name: str
    version: str
    version_id: str
    containers: int
    spec: FunctionSpec
    artifacts: tuple[ArtifactInfo, ...] = ()
    schedules: tuple[ScheduleInfo, ...] = ()
    hooks: tuple[HookInfo, ...] = ()
    """Of a class: what its calls run through before and behind the method."""


class HookInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A hook of a class, which has containers of its own."""

    stage: str
    """preprocess or postprocess"""
    version_id: str
    containers: int


class AppInfo(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    revision: int
    deployed_at: float
    stopped: bool
    functions: tuple[FunctionInfo, ...]


class UsageLine(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One line of `GET /v1/usage`: a tenant, function, version, day, state and price.

    Cores and memory that were promised beside slices have lines of their own, with the prices `cpu_core` and
    `memory_gib`. Without grouping by price their cost is in the lines of the slices, and their time is not counted.
    """

    day: str
    app: str
    function: str
    version: str
    state: str
    """busy, idle, provisioning, loading or draining."""
    price: str
    ppm: int
    calls: int
    ns: int
    gpu_seconds: float
    """Seconds of a whole device; of `cpu_core` those of a core, of `memory_gib` those of a GiB."""
    cost: str
    currency: str = "USD"
    tags: dict[str, str] | UnsetType = UNSET
    """Of those that the report is grouped by, the function's value, or ""; unset: it is grouped by none."""
    hour: str | UnsetType = UNSET
    """UTC, such as `2026-11-20T14`. As all that follow it is unset if the report is not grouped by it."""
    tenant: str | UnsetType = UNSET
    """Who pays; "": the operator."""
    key: str | UnsetType = UNSET
    """The id of the API key that asked for the calls; "": of time between calls, or not known."""
    gpu: str | UnsetType = UNSET
    """The type of GPU, such as `H100`; `cpu` of CPU slots, `host` of cores and memory beside them."""
    purpose: str | UnsetType = UNSET
    """Why the container was started, such as `call` or `floor`."""
    purchase: str | UnsetType = UNSET
    """How the node was bought: `on-demand` or `spot`."""
    region: str | UnsetType = UNSET


class KeyRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/keys`."""

    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1)] = ("invoke",)
    expires_in_s: Life | None = None
    label: Annotated[str, Meta(max_length=100, pattern=LINE_PATTERN)] = ""
    certificate: Annotated[str, Meta(pattern=f"^[A-Za-z0-9][A-Za-z0-9._-]{{0,62}}{END}")] | UnsetType = UNSET
    """The common name of client certificates that stand for the key, which has no secret then. For operators."""
    break_glass: bool | UnsetType = UNSET
    """A key for days on which nobody can log in: each request with it is written down. For operators, as are they."""
