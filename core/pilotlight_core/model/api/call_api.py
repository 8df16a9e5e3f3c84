"""The bodies of the native HTTP API, as the gateway and the SDK both read them.

Requests forbid unknown fields (the error names them); responses may grow, and readers ignore what they do not know.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.ids import END
from pilotlight_core.model.spec import FileEntry, FunctionSpec

LONGEST_LIFE = 10 * 365 * 86_400.0
HIDDEN = (
    r"\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f"
    r"\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
)
LINE_PATTERN = f"^[^{HIDDEN}]*{END}"
"""Text that a terminal shows as it is: no control characters, and none that hide or reorder others."""
Scope = Annotated[str, Meta(pattern=f"^(invoke|deploy|read|admin|operator){END}")]
Life = Annotated[float, Meta(gt=0, le=LONGEST_LIFE)]
"""How long a key is valid, in seconds: ten years at most."""


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of request bodies."""


class CallRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/functions/{ref}/calls`. `input` and `parameters` together are the named arguments."""

    input: dict[str, Any] = {}
    parameters: dict[str, Any] = {}
    method: str | None = None
    id: str | None = None
    """A client-made id, `cid_` and 8 to 60 characters, by which the call can be cancelled before it is answered."""
    deadline_ms: float | None = None
    """How long the caller waits, in all; default and most: the function's timeout plus the time to start it."""
    run_at: float | None = None
    """Of a job (`Prefer: respond-async`): not before; unix seconds. Default: now."""
    expires_in_s: float | None = None
    """Of a job: how long it may wait for a container from when it could first run; default: a day."""
    keep_s: float | None = None
    """Of a job: how long it is kept after its end; default and most: as long as the platform keeps jobs."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What is billed for one call. `cost` is exact dollars rounded to 12 places; the report sums the unrounded."""

    gpu_ms: float
    ns: int
    ppm: int
    price: str
    cost: str
    currency: str = "USD"
    batch_size: int = 1
    attempts: int = 1


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of the gateway's clock from the request's arrival to its answer, and where they went.

    The stages sum to `total_ms`: gateway (authenticate, parse, validate), queue (waiting for a container), start
    (that part of the queueing in which a container was being started for it), transport, batch_wait, execute, respond.
    """

    total_ms: float
    stages: dict[str, float]


class CallResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a unary call."""

    id: str
    output: Any
    version: str
    """The resolved version, `app.function@v7`."""
    usage: Usage
    latency: Latency
    cold_start: dict[str, float] | None = None
    """The steps of the start that the call waited for, in ms; None when a container was ready."""
    request_id: str = ""


class CallStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/calls/{id}`: queued, running, succeeded, failed or cancelled."""

    id: str
    state: str
    version: str
    age_ms: float
    client_id: str | None = None
    container: str | None = None
    error: dict[str, Any] | None = None


class JobStatus(CallStatus, frozen=True, kw_only=True):
    """How a durable call is: queued, running, succeeded, failed, cancelled or expired. Times are unix seconds.

    Of a live call, `GET /v1/calls/{id}` answers with the fields of CallStatus alone.
    """

    created_at: float = 0.0
    run_at: float = 0.0
    """Not before; of a job that is tried again, when."""
    expires_at: float = 0.0
    started_at: float | None = None
    """Of the last attempt."""
    ended_at: float | None = None
    attempts: int = 0
    """How often it was started."""
    run: str | None = None
    """The id of the call that its last attempt was or is: receipts, logs and events name it."""
    position: int | None = None
    """While it is queued: how many jobs of this function, tenant and class are before it, as far as that is known."""
    starts_in_s: float | None = None
    """While it is queued: estimated from how fast these start."""
    reason: str | None = None
    """Why it is dead: raised, interrupted, timeout, bad_input, bad_output, load_failed, undeliverable or expired."""
    redrives: int = 0
    output: Any = msgspec.UNSET
    """What it returned; in lists it is left out."""
    usage: Usage | None = None
    stages: dict[str, float] | None = None
    """Milliseconds of the attempt that succeeded, as in Latency."""
    cold_start: dict[str, float] | None = None


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/jobs`: the last changed first. `next` is the cursor of the next page; null: there is none."""

    jobs: tuple[JobStatus, ...]
    next: str | None = None


class DeployFunction(Request, frozen=True, kw_only=True):
    """One function of a deploy."""

    spec: FunctionSpec


class DeployRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/apps/{app}/deploys`: everything that an app is, at once.

    Answered by 200 with DeployResponse, or by 409 `missing_blobs` semantics: `missing` non-empty and nothing deployed;
    the client then uploads them (`PUT /v1/blobs/{sha256}`) and asks again.
    """

    functions: tuple[DeployFunction, ...]
    files: tuple[FileEntry, ...]
    message: str = ""
    base: str = "default"


class DeployedFunction(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    """`app.function@v7`."""
    version_id: str
    endpoint: str
    """Path of its calls."""
    changed: bool


class DeployResponse(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    revision: int
    missing: tuple[str, ...] = ()
    """Digests to upload first; when not empty, nothing was deployed."""
    functions: tuple[DeployedFunction, ...] = ()
    warnings: tuple[str, ...] = ()
    """What was deployed all the same, and will not be as it was asked for."""


class FunctionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One function of an app as `GET /v1/apps` shows it."""

    name: str
    version: str
    version_id: str
    containers: int
    spec: FunctionSpec


class AppInfo(msgspec.Struct, frozen=True, kw_only=True):
    app: str
    revision: int
    deployed_at: float
    stopped: bool
    functions: tuple[FunctionInfo, ...]


class UsageLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `GET /v1/usage`: a tenant, function, version, day, state and price."""

    day: str
    app: str
    function: str
    version: str
    state: str
    """busy, idle, loading or draining."""
    price: str
    ppm: int
    calls: int
    ns: int
    gpu_seconds: float
    cost: str
    currency: str = "USD"


class KeyRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/keys`."""

    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1)] = ("invoke",)
    expires_in_s: Life | None = None
    label: Annotated[str, Meta(max_length=100, pattern=LINE_PATTERN)] = ""
