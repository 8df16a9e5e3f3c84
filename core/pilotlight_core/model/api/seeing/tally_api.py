"""The bodies of the HTTP API about what was counted of functions' calls."""

from __future__ import annotations

import msgspec


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """Of durations, in milliseconds; each is right within 2 %."""

    count: int = 0
    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    max: float = 0.0


class BatchStats(msgspec.Struct, frozen=True, kw_only=True):
    """Calls that ran in batches of one size, or from it to below its double."""

    size: int
    calls: int
    gpu_ms: float


class SampleStats(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as an example."""

    id: str
    at: str
    """ISO 8601, UTC."""
    total_ms: float
    stages: dict[str, float] = {}
    code: str = ""
    batch_size: int = 1
    attempts: int = 1
    cold: bool = False


class HomeStats(msgspec.Struct, frozen=True, kw_only=True):
    """Queue and containers of a function on average over a window, as its home saw them."""

    seen_s: float = 0.0
    """For how much of the window there was a home that looked."""
    queued: float = 0.0
    running: float = 0.0
    ready: float = 0.0
    starting: float = 0.0
    wanted: float = 0.0
    slots: float = 0.0
    shortage: float = 0.0
    """Part of the time in which there was no room for another container."""
    idle_credit: float = 0.0
    """Part of the time in which calls waited though a container had room."""
    busy: float = 0.0
    """Containers that ran calls, on average."""
    most_queued: int = 0
    oldest_ms: float = 0.0


class GatewayStats(msgspec.Struct, frozen=True, kw_only=True):
    """How a gateway was over a window."""

    gateway: str
    loop_share: float = 0.0
    late_ms: float = 0.0
    link_in: int = 0
    link_out: int = 0


class StatsPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a series."""

    at: str
    """Its beginning, ISO 8601, UTC."""
    seconds: float
    calls: int = 0
    failed: int = 0
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    first_chunk_p95_ms: float = 0.0
    queued: float = 0.0
    running: float = 0.0
    ready: float = 0.0
    cold_calls: int = 0
    gpu_ms: float = 0.0
    units: dict[str, int] = {}
    job_runs: int = 0
    job_gpu_ms: float = 0.0


class JobRunStats(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of jobs, those of batches and schedules among them, apart from calls whose callers wait."""

    runs: int = 0
    """Those that ended, well or not."""
    per_s: float = 0.0
    succeeded: int = 0
    failed: dict[str, int] = {}
    """By code."""
    durations: Quantiles = Quantiles()
    """From when a run was queued at its function's home, of those that ended well."""
    stages: dict[str, Quantiles] = {}
    cold_runs: int = 0
    batch_size: float = 0.0
    gpu_ms: float = 0.0
    units: dict[str, int] = {}


class VersionStats(msgspec.Struct, frozen=True, kw_only=True):
    """The part of one version."""

    version: str
    arm: str = ""
    """"jobs": of runs of jobs."""
    calls: int = 0
    failed: int = 0
    durations: Quantiles = Quantiles()
    gpu_ms: float = 0.0


class FunctionStats(msgspec.Struct, frozen=True, kw_only=True):
    """What was counted of a function's calls in a window."""

    function: str
    """`app.function`."""
    since: str
    """ISO 8601, UTC."""
    until: str
    window_s: float
    arrivals: int = 0
    calls: int = 0
    """Those that ended, well or not."""
    per_s: float = 0.0
    succeeded: int = 0
    failed: dict[str, int] = {}
    """By code."""
    gone: int = 0
    """Those whose client hung up."""
    availability: float | None = None
    """Calls that the platform answered, of those in which it had a part; None: there were none."""
    levels: dict[str, float] = {}
    """By service level, the part of the calls that kept it."""
    durations: Quantiles = Quantiles()
    failed_durations: Quantiles = Quantiles()
    stages: dict[str, Quantiles] = {}
    """Of the calls that spent time in the stage."""
    first_chunks: Quantiles = Quantiles()
    gaps: Quantiles = Quantiles()
    cold_calls: int = 0
    cold_steps: dict[str, float] = {}
    batches: list[BatchStats] = []
    batch_size: float = 0.0
    """On average over the calls."""
    gpu_ms: float = 0.0
    attempts: int = 0
    retried: int = 0
    body_in: int = 0
    body_out: int = 0
    units: dict[str, int] = {}
    unread_ms: float = 0.0
    inside: float = 0.0
    """Calls inside, on average."""
    jobs: JobRunStats = JobRunStats()
    """Of them nothing is in the other numbers, but in those of queue and containers."""
    home: HomeStats = HomeStats()
    gateways: list[GatewayStats] = []
    silent: list[str] = []
    """Gateways that did not answer in time, to tenants without their names: their calls are missing."""
    versions: list[VersionStats] = []
    slowest: list[SampleStats] = []
    samples: list[SampleStats] = []
    series: list[StatsPoint] = []
    """If a step was asked for."""


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """One function in a list."""

    function: str
    """`app.function`; "other": those that were called too rarely to be counted by themselves."""
    calls: int = 0
    per_s: float = 0.0
    failed: int = 0
    failed_by_platform: int = 0
    """Those of them that the platform is to blame for."""
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    cold_calls: int = 0
    gpu_ms: float = 0.0
    job_runs: int = 0
    """Runs of jobs that ended; of those nothing is in the other numbers but `queued` and `ready`."""
    job_gpu_ms: float = 0.0
    queued: float = 0.0
    ready: float = 0.0


class StatsList(msgspec.Struct, frozen=True, kw_only=True):
    """The functions of a tenant, those with the most calls first."""

    since: str
    until: str
    window_s: float
    functions: list[StatsRow] = []
    total: int = 0
    """Functions that had calls, also those that are not listed."""
    silent: list[str] = []
