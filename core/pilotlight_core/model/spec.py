"""The tenant's specification: functions, apps, bundles and immutable versions.

The SDK makes a spec at deploy, the gateway checks it again (`check_spec`), and it travels to agents inside the signed
manifest. The guest reads it from there and never re-runs decorators.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from pilotlight_core.model.artifacts.artifact_entries import ArtifactEntry as ArtifactEntry
from pilotlight_core.model.artifacts.artifact_entries import ArtifactInfo as ArtifactInfo
from pilotlight_core.model.artifacts.artifact_entries import ArtifactKind as ArtifactKind
from pilotlight_core.model.artifacts.artifact_entries import ArtifactPart as ArtifactPart
from pilotlight_core.model.artifacts.evidence_info import EvidenceInfo
from pilotlight_core.model.calendar.schedule_entry import Schedule as Schedule
from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.engines.engine_spec import EngineSpec
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.pipelines.pipeline import HookKind, Pipeline, is_companion
from pilotlight_core.model.placing import Placing
from pilotlight_core.model.rehearsals.rehearsal import Rehearsal
from pilotlight_core.model.streams.resuming import Resumable
from pilotlight_core.model.units import GpuAsk

DEFAULT_BASE = "default"
"""The base environment that every node has: the one in which its agent runs."""
LONGEST_TIMEOUT_S = 86_400.0
MAX_SCHEMA_BYTES = 64 * 1024
"""Of one method; small, because every gateway compiles them."""
MAX_SCHEMAS_BYTES = 256 * 1024
"""Of all methods of a function together."""
MAX_BUNDLE_BYTES = 200 * 10**6
MAX_BUNDLE_FILES = 10_000
MAX_FUNCTIONS = 200
MAX_LEVEL_MS = 1e9
MAX_METHODS = 50
MAX_ENV_BYTES = 32 * 1024
LEAST_MEMORY, MOST_MEMORY = 64 * 2**20, 2**44
"""Bytes of the host."""
AMOUNTS = ("memory", "shm", "scratch", "vram")
"""Fields that are bytes."""
LEAST_TMPFS = 2**20
"""Bytes of /dev/shm, or of /tmp."""
LEAST_PIDS, MOST_PIDS = 16, 65_536
"""The guest has some threads of its own."""
UNNAMED_CPU_MILLIS = 100
"""What a function without `cpu=` is promised, in thousandths of a core: the least that can be asked for."""
UNNAMED_CPU_MOST_MILLIS = 1000
"""What it may use where nobody else needs it."""


class Priority(StrEnum):
    INTERACTIVE = "interactive"  # a person waits for it
    STANDARD = "standard"  # the default
    BATCH = "batch"  # whenever there is room


class Isolation(StrEnum):
    """What a version shares its device with."""

    SHARED = "shared"  # other functions of the same tenant
    MIG = "mig"  # nothing but other MIG instances
    EXCLUSIVE = "exclusive"  # nothing


class Mode(StrEnum):
    UNARY = "unary"  # one value
    GENERATOR = "generator"  # a stream of chunks


class SLO(msgspec.Struct, frozen=True, kw_only=True):
    """Service levels in milliseconds; None means the platform's default."""

    p95_ms: float | None = None
    """Of a call; a batch waits no longer than it allows."""
    ttft_ms: float | None = None
    """To the first token, of an engine: scaling holds it. `check_spec` refuses both of a function that is none."""
    itl_ms: float | None = None
    """Between two tokens, of an engine: scaling and its containers' offers hold it."""


class Batching(msgspec.Struct, frozen=True, kw_only=True):
    """Dynamic batching of one method: it is called with lists and returns a list of the same length."""

    max_batch_size: int
    wait_ms: float = 10.0
    """The longest time a first item waits for others; the SLO may shorten it."""
    cost_of: str | None = None
    """How the cost of one item is computed: None (1 each), or "len:PARAM" / "value:PARAM"."""
    max_batch_cost: float | None = None


MAX_RETRY_PAUSE_S = 10.0
"""The longest pause between two tries of a live call."""


class MethodSpec(msgspec.Struct, frozen=True, kw_only=True, weakref=True):
    """A callable: the function itself (name ""), or a method of a class."""

    name: str
    attribute: str
    """The function's qualified name, or the method's attribute on the class."""
    mode: Mode = Mode.UNARY
    is_async: bool = False
    input_schema: dict[str, Any] = {}
    """JSON Schema (2020-12) of the object of named arguments."""
    output_schema: dict[str, Any] = {}
    """JSON Schema of the answer, or of one chunk of a generator."""
    batching: Batching | None = None


class FunctionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The requirements of one function. Memory in bytes, times in seconds unless the name says otherwise."""

    name: str
    module: str
    qualname: str
    is_class: bool = False
    methods: tuple[MethodSpec, ...]
    enter: tuple[str, ...] = ()
    exit: tuple[str, ...] = ()
    gpu: tuple[GpuAsk, ...] = ()
    """Acceptable GPUs in order of preference; empty, or an ask of type "CPU", means a CPU slot."""
    vram: int | None = None
    cpu: float | None = None
    """Cores of the host, promised and at most; None: see `UNNAMED_CPU_MILLIS` and `UNNAMED_CPU_MOST_MILLIS`."""
    memory: int = 2 * 2**30
    """Of the host, promised and at most."""
    timeout: float = 300.0
    startup_timeout: float = 600.0
    retries: int = 0
    """How often a call whose code raised is repeated, while its caller waits and before it has a part of the answer."""
    min_containers: int = 0
    max_containers: int = 10
    buffer_containers: int = 0
    scaledown_window: float = 60.0
    max_inputs: int = 1
    env: dict[str, str] = {}
    isolation: Isolation = Isolation.SHARED
    idempotent: bool = False
    slo: SLO = SLO()
    priority: Priority = Priority.STANDARD
    placing: Placing = Placing()
    # What came after release 0.1 is UNSET where it says nothing, and not written then: 0.1 refuses unknown fields.
    shm: int | UnsetType = UNSET
    """Bytes of /dev/shm; it lives in memory and counts into `memory`. Unset: the platform's default."""
    scratch: int | UnsetType = UNSET
    """Bytes of /tmp; as `shm`."""
    pids: int | UnsetType = UNSET
    """Processes and threads of a container; unset: the platform's default."""
    tags: dict[str, str] | UnsetType = UNSET
    """What its usage is reported by, beside its names; unset: nothing."""
    schedules: tuple[Schedule, ...] | UnsetType = UNSET
    """When it runs by itself, at most once for each method; unset: never."""
    warm: tuple[Warm, ...] | UnsetType = UNSET
    """Times of the week in which it keeps containers without calls; unset: none."""
    forecast: bool | UnsetType = UNSET
    """Whether what its past foretells may keep or start containers; unset: it may."""
    zero_window: float | UnsetType = UNSET
    """Seconds without calls after which the last container ends; unset: `scaledown_window`, as of any."""
    max_units: dict[str, int] | UnsetType = UNSET
    """By `CallUnit`: what one call is billed for at most of what it counts; of units that are not named, nothing."""
    network: tuple[str, ...] | UnsetType = UNSET
    """What it may connect to, as `network_targets` reads it; unset: nothing."""
    secrets: dict[str, str] | UnsetType = UNSET
    """Variable, or file below /run/secrets, and the name of the secret whose value is there (`secret_uses`)."""
    park: tuple[str, ...] | UnsetType = UNSET
    unpark: tuple[str, ...] | UnsetType = UNSET
    """Hooks that leave the device before the container is parked, and that return to it; unset: it has none."""
    rehearsal: Rehearsal | UnsetType = UNSET
    """What its containers do before calls reach them, and again later; unset: they enter, and `__check__` runs."""
    resumable: Resumable | UnsetType = UNSET
    """How its streams go on elsewhere; unset: they do not."""
    drain: tuple[str, ...] | UnsetType = UNSET
    """Hooks that run when a container's node is taken away; unset: none."""
    engine: EngineSpec | UnsetType = UNSET
    """The language model that it is, which containers run without code of the tenant's; unset: it has code."""
    pipeline: Pipeline | UnsetType = UNSET
    """Hooks of a class that its calls run through before and behind the method; unset: none."""
    hook: HookKind | UnsetType = UNSET
    """Of a companion: which hook of its class it runs; unset: it is none."""
    serves: tuple[str, ...] | UnsetType = UNSET
    """Names of models under which clients of OpenAI's API find it; unset: none."""
    fallback: Fallback | UnsetType = UNSET
    """The function of its app that runs calls for which this one has no room; unset: they are refused."""
    twin: str | UnsetType = UNSET
    """Of a twin: the version id whose content it has, and for which its calls count; unset: it is none."""

    def method(self, name: str | None) -> MethodSpec:
        """The method called `name`; None or "": the only one.

        Raises:
            BadInput: if there is no such method, or several and none named.
        """
        if not name and len(self.methods) == 1:
            return self.methods[0]
        for method in self.methods:
            if method.name == (name or ""):
                return method
        known = ", ".join(m.name for m in self.methods if m.name) or "none, it is a plain function"
        what = f"{self.name} has no method {name!r}" if name else f"{self.name} is a class: name a method of it"
        raise BadInput(f"{what}; its methods: {known}.", field="method")

    @property
    def longest_call_s(self) -> float:
        """Seconds in which a live call has had a start, and all of its tries with the pauses between them.

        Of a class with hooks, in each of its stages.
        """
        tries_s = (1 + self.retries) * self.timeout + self.retries * MAX_RETRY_PAUSE_S
        return self.stages * (self.startup_timeout + tries_s)

    @property
    def stages(self) -> int:
        """In how many functions a call of it runs in turn: in its own, and in the companions of its hooks."""
        return 1 if self.pipeline is UNSET else 1 + len(self.pipeline.hooks)

    @property
    def cpu_millis(self) -> int:
        """Thousandths of a core that a container is promised."""
        return UNNAMED_CPU_MILLIS if self.cpu is None else round(self.cpu * 1000)

    @property
    def most_cpu_millis(self) -> int:
        """Thousandths of a core that a container may use."""
        return UNNAMED_CPU_MOST_MILLIS if self.cpu is None else round(self.cpu * 1000)

    @property
    def slots(self) -> int:
        """Calls that a container holds at once: running ones, and for a batched method the batch being formed."""
        return max(self.max_inputs, 2 * self._largest_batch)

    @property
    def slots_of_all(self) -> int:
        """Those of `slots` that any caller may take: of an engine as many calls as it runs."""
        return self.slots if self.engine is UNSET else min(self.slots, self.engine.max_sequences)

    @property
    def concurrency(self) -> int:
        return max(self.max_inputs, self._largest_batch)

    @property
    def gpus(self) -> int:
        """The most GPUs that a container may ask for; a part of one counts as one, a CPU slot as none."""
        return max((choice.count for choice in self.gpu if choice.type != "CPU"), default=0)

    @property
    def _largest_batch(self) -> int:
        return max((m.batching.max_batch_size for m in self.methods if m.batching), default=0)


class FileEntry(msgspec.Struct, frozen=True):
    """One file of a bundle: its path below the bundle's root (POSIX, relative), digest and length in bytes."""

    path: str
    sha256: str
    size: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one function, whole: what is signed. `manifest_codec` has its bytes, and the version's identity.

    An agent ignores fields that it does not know, unless `needs` names a feature that it lacks.
    """

    tenant: str
    app: str
    function: str
    spec: FunctionSpec
    files: tuple[FileEntry, ...]
    base: str = DEFAULT_BASE
    needs: tuple[str, ...] = ()
    """What an agent must be able to do, sorted: see `manifest_codec.FEATURES`."""
    artifacts: tuple[ArtifactEntry, ...] = ()
    lock: PackageLock | None = None
    """What its requirements were resolved to; None: it has none."""
    signed: tuple[str, ...] = ()
    """What its tenant has signed, sorted: `code` and names of artifacts. No agent loads it without those signatures."""


class SignedManifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest's bytes with the platform's ed25519 signature over them. Their digest is the version's identity."""

    manifest: bytes
    key_id: str
    signature: bytes


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The registry's record of an immutable version. Key: `version.{version_id}`."""

    id: str
    tenant: str
    app: str
    function: str
    number: int
    """7 of `@v7`; counts up per function."""
    manifest_sha256: str
    """The blob with the msgpack of its SignedManifest, in the tenant's folder."""
    spec: FunctionSpec
    schemas_apart: bool = False
    """Whether the schemas of `spec` are empty here because they are large: the manifest has them."""
    bundle_bytes: int
    created_at: float
    """Unix seconds."""
    renewed_at: float = 0.0
    """When a deploy last found it stored for long, in unix seconds; 0: never."""
    artifacts: tuple[ArtifactInfo, ...] = ()
    base: str = DEFAULT_BASE
    """The manifest's; only nodes that have it are chosen."""
    needs: tuple[str, ...] = ()
    """The manifest's; only nodes whose agent can do all of it are chosen."""
    environment: str = ""
    """`environment_id` of the manifest's lock; nodes that have it built go first."""
    evidence: EvidenceInfo | None = None
    """The documents about it; None: it was registered by a release without them."""

    @property
    def ref(self) -> str:
        return f"{self.app}.{self.function}@v{self.number}"


class AppRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The registry's record of an app, with the version of each function. Key: `app.{tenant}.{app}`.

    A deploy replaces the record by compare-and-set, so it is atomic for the app.
    """

    tenant: str
    app: str
    revision: int
    """Counts deploys from 1."""
    functions: dict[str, str]
    """function -> version id; a missing one is not deployed."""
    versions: dict[str, tuple[str, ...]] = {}
    """function -> ids of its versions that are kept, oldest first. Also of functions that were deployed before."""
    forgotten: dict[str, int] = {}
    """function -> the number of its versions before those."""
    history: tuple[DeployRecord, ...] = ()
    """The last 100 deploys, oldest first."""
    stopped: bool = False
    ends_at: float = 0.0
    """Of a run (`pilotlight run`): the unix second at which it ends unless it is renewed; 0: it stays."""

    @property
    def named_functions(self) -> dict[str, str]:
        """Those of `functions` that can be named: without the companions of classes with hooks."""
        return {name: version for name, version in self.functions.items() if not is_companion(name)}

    def has_ended(self, at: float) -> bool:
        """Whether it is a run whose time is over at the unix second `at`."""
        return bool(self.ends_at) and at >= self.ends_at

    def number_of(self, function: str, version_id: str) -> int | None:
        """The 7 of `@v7`; None: it is not among the kept versions."""
        known = self.versions.get(function, ())
        return self.forgotten.get(function, 0) + known.index(version_id) + 1 if version_id in known else None

    def newest_number(self, function: str) -> int:
        """The number of its newest version; 0: there was none."""
        return self.forgotten.get(function, 0) + len(self.versions.get(function, ()))

    def version_at(self, function: str, number: int) -> str | None:
        """The id of `@v{number}`; None: there is none, or it is not kept."""
        place = number - self.forgotten.get(function, 0) - 1
        known = self.versions.get(function, ())
        return known[place] if 0 <= place < len(known) else None


class DeployRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of an app's history."""

    revision: int
    at: float
    by: str
    """The id of the API key that deployed it."""
    functions: dict[str, str]
    message: str = ""
    traffic: bool = True
    """Whether its versions were put into service; else they were registered alone, for pins and rollouts."""
    back_to: int = 0
    """Of a rollback: the revision whose versions it put back into service; 0: it is none."""


def limit_of(named: int | UnsetType) -> int:
    """A limit of a sandbox; 0 if the spec does not name it."""
    return 0 if named is UNSET else named


def tags_of(spec: FunctionSpec) -> dict[str, str]:
    return {} if spec.tags is UNSET else spec.tags


def max_units_of(spec: FunctionSpec) -> dict[str, int]:
    return {} if spec.max_units is UNSET else spec.max_units


def network_of(spec: FunctionSpec) -> tuple[str, ...]:
    return () if spec.network is UNSET else spec.network


def served_names(spec: FunctionSpec) -> tuple[str, ...]:
    return () if spec.serves is UNSET else spec.serves


def schedules_of(spec: FunctionSpec) -> tuple[Schedule, ...]:
    return () if spec.schedules is UNSET else spec.schedules
