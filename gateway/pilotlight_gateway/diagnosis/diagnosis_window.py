"""The facts of one function in a window of time, as far as they are known. Times are ms where the name says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

STAGES = (
    "gateway", "preprocess", "queue", "start", "transport", "batch_wait", "execute", "postprocess", "respond",
)  # fmt: skip
"""Of a call, in the order in which it passes them; together they are its time."""
GATEWAY, PREPROCESS, QUEUE, START, TRANSPORT, BATCH_WAIT, EXECUTE, POSTPROCESS, RESPOND = range(len(STAGES))
StageTimes = tuple[float, ...]
"""Milliseconds in each of `STAGES`."""


@dataclass(frozen=True, slots=True)
class CallSample:
    """A call that ended well, and how many calls it stands for."""

    stages: StageTimes
    weight: float = 1.0
    tenant: str = ""
    """The caller's; "": not known."""


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Batches of one size, or calls that ran at once, and how long one took on average."""

    size: int
    count: float
    ms: float


@dataclass(frozen=True, kw_only=True)
class FlowFacts:
    """The calls of one tenant to the function."""

    tenant: str
    slowdown: float
    """How much longer they take than if their tenant were alone."""
    held_part: float
    """Of the time in slots that all tenants held, its part."""
    rate: float = 0.0
    """Of its calls that ended, per second."""
    mean_ms: float = 0.0
    run_ms: float = 0.0
    """How long one runs."""


@dataclass(frozen=True, kw_only=True)
class QuotaFacts:
    """A limit that refused calls."""

    limit: str
    """Its field, such as `requests_per_s`."""
    tenant: str
    allowed: float
    function: str = ""
    """Of calls to this one alone, `app.function`; "": of all calls of the tenant."""
    beside: str = ""
    """What is set beside it in the same place, which has to be said again with it: "burst=5 concurrency=9"."""

    def command(self, value: float) -> str:
        """That sets another value, and keeps what is set beside it."""
        words = ["pilotlight quota set", self.tenant, f"{self.limit}={value:g}", self.beside]
        words += [f"--function {self.function}"] if self.function else []
        return " ".join(word for word in words if word)


@dataclass(frozen=True, kw_only=True)
class SliceSpeed:
    """How long the smallest batch takes on a kind of slice, by a curve."""

    what: str
    """In words: "3g of H100-80GB"."""
    batch: int
    ms: float
    memory: int = 0
    """Bytes of device memory; 0: not known."""


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """A token engine: means over its containers, sums where the name says per second."""

    tokens_per_s: float
    asked_tokens_per_s: float
    """Of answers, as calls ask for them."""
    first_token_ms: float
    """The 95th percentile of the time to a first token."""
    gap_ms: float
    """The 95th percentile of the time between two tokens."""
    first_token_level_ms: float
    gap_level_ms: float
    running: float
    """Sequences of one container."""
    waiting: float
    most: int
    """Sequences that one may run."""
    kv_full_part: float
    """Part of the time in which the room for keys and values was at least nine tenths full."""
    preempted: int
    step_ms: float
    """A step with no sequence in it, and what each sequence and each token of a prompt adds to it."""
    sequence_ms: float
    prompt_token_ms: float
    prompt_tokens_per_s: float
    chunk: int
    """The most tokens of prompts in a step."""
    late_with_prompt: float
    """Of the gaps that were too long, the part that had somebody's prompt in the same step."""

    def step_of(self, sequences: float) -> float:
        """How long a step over so many sequences takes, without prompts."""
        return self.step_ms + self.sequence_ms * sequences


@dataclass(frozen=True, kw_only=True)
class DiagnosisWindow:
    """What a platform has counted of a function between two instants. None: nobody counts it."""

    function: str
    """`app.function@v7`, as its people call it."""
    owner: str = ""
    """Its tenant."""
    seconds: float
    level_ms: float
    """95 of 100 calls are to take no longer."""
    level_named: bool = True
    """Whether its specification says so; else it is what the platform takes for bearable."""
    wanted_per_s: float | None = None
    """The rate that whoever asks wants to reach."""

    # -- calls, at the gateways that hold their callers
    arrivals: int
    completed: int
    failed: Mapping[str, int] = field(default_factory=dict)
    """By error code, refused ones among them."""
    left_inside: int = 0
    """Calls inside at the end."""
    began_inside: int | None = 0
    """At the beginning; None: nobody knows."""
    mean_inside: float | None = None
    """On average over the window."""
    mean_ms: float | None = None
    """Of all calls that ended well; None: that of the samples."""
    failed_s: float = 0.0
    """Of all calls that failed together, the seconds that they took."""
    p95_ms: float | None = None
    longest_ms: float = 0.0
    """That any call was inside, or has waited."""
    samples: tuple[CallSample, ...] = ()
    batches: tuple[BatchTimes, ...] = ()
    batches_off: float = 0.0
    """How far their times may be off, relative, since only examples say them."""
    body_bytes: float = 0.0
    """Of one call, both ways."""
    unread_ms: float = 0.0
    """Of one call: how long its stream stood still since its caller had not read on."""

    # -- its home
    queued: float = 0.0
    containers: float = 0.0
    """That are ready, on average."""
    starting: float = 0.0
    wanted: float = 0.0
    """The most containers that were wanted."""
    shortage_part: float = 0.0
    """Part of the time in which containers were wanted for which the fleet has no room."""
    held_part: float | None = None
    """Of all slots of ready containers, those that calls held."""
    idle_credit_part: float = 0.0
    """Part of the time in which calls waited and slots were free."""
    starts: int = 0
    failed_starts: int = 0
    idle_ends: int = 0
    """Containers that ended since they had nothing to do."""
    start_ms: float = 0.0
    """How long a start takes."""
    start_error: str = ""
    """How the last start failed."""
    flows: tuple[FlowFacts, ...] = ()
    breaker: str = "closed"
    """Of the version."""
    died: int = 0
    """Containers that were ready and died."""

    # -- its containers
    busy_s: float | None = None
    """Time in which they ran calls, of all of them together."""
    jobs_busy_s: float = 0.0
    """Time in which they ran jobs, beside that."""
    guest_cpu_s: float | None = None
    """Of their processors."""
    throttled_s: float | None = None
    """Time in which they were kept from processors, since they had used what they may."""
    cores: float = 1.0
    """That one container may use."""
    memory_part: float = 0.0
    """Of the host memory that one may use, the most that was used."""
    device_part: float | None = None
    """Part of the time in which the device computed."""
    slice: str = "GPU"
    """What they run on, in words."""
    on_gpu: bool = True
    other_slices: tuple[SliceSpeed, ...] = ()

    # -- what it is held to
    slots: int = 1
    """Calls that a container takes at once."""
    batch_most: int = 1
    """Calls that run together at most: a batch, or concurrent calls."""
    is_batched: bool = False
    batch_cost_most: float | None = None
    """The most that the calls of a batch may cost together, if that is limited."""
    wait_ms: float = 0.0
    """The longest time that a batch waits for company."""
    max_containers: int = 10
    min_containers: int = 0
    scaledown_s: float = 60.0
    free_places: int | None = None
    """For how many more of its containers the fleet has room now."""
    owner_limit: QuotaFacts | None = None
    """The limit of its owner that keeps it from having more containers."""
    quotas: tuple[QuotaFacts, ...] = ()
    """Limits of callers that are near or reached."""

    # -- the gateways
    gateways: int = 1
    loop_part: float | None = None
    """Of the busiest one's thread, the part of the time in which it works."""
    link_part: float | None = None
    """Of its link, the part of what it can carry."""

    engine: EngineFacts | None = None

    @property
    def refused(self) -> int:
        """Calls that ended with an error."""
        return sum(self.failed.values())

    @property
    def ended(self) -> int:
        return self.completed + self.refused

    @property
    def rate(self) -> float:
        """Calls per second that ended well."""
        return self.completed / self.seconds

    def codes(self, *codes: str) -> int:
        """How many calls ended with one of these errors."""
        return sum(self.failed.get(code, 0) for code in codes)
