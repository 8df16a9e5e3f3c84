"""What gateways count of calls by function, and tell each other: tallies of a window, which can be added up.

A tally is a value: `pilotlight_gateway.tally` adds calls to it, merges several, and reads quantiles from its sketches.
Durations are in milliseconds, instants in unix nanoseconds of the gateway that counted.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Count, Duration, Rising, ShortText, Units

STAGES = (
    "gateway", "preprocess", "queue", "start", "transport", "batch_wait", "execute", "postprocess", "respond",
)  # fmt: skip
"""In the order in which a call passes them."""
JOBS = "jobs"
"""The arm of runs of jobs, those of batches and schedules among them: nobody waits for their answers."""
MOST_ASKED_FUNCTIONS = 64
MOST_TOLD = 1_024
"""Of one answer: parts by function, version and step."""
MOST_BUCKETS = 512
"""Of a sketch."""
MOST_SAMPLES = 640
MOST_SLOWEST = 32
MOST_SIZES = 64
"""Of batches."""
MOST_UNITS = 16
BucketIndex = Annotated[int, Meta(ge=0, le=4_096)]
SmallCounts = Annotated[dict[ShortText, Count], Meta(max_length=128)]
HistogramCounts = Annotated[tuple[Count, ...], Meta(max_length=64)]
SmallSums = Annotated[dict[ShortText, Duration], Meta(max_length=64)]


class SketchCounts(msgspec.Struct, frozen=True, array_like=True):
    """How often which durations were: counts by bucket, the lowest first. `tally.sketch` says what a bucket is."""

    buckets: Annotated[tuple[BucketIndex, ...], Meta(max_length=MOST_BUCKETS)] = ()
    counts: Annotated[tuple[Count, ...], Meta(max_length=MOST_BUCKETS)] = ()
    """Of each of these buckets."""
    sum: Duration = 0.0
    """Of all durations, exactly."""
    most: Duration = 0.0
    """The longest one."""


class BatchTally(msgspec.Struct, frozen=True, array_like=True):
    """Calls that ran in batches of one size."""

    calls: Count = 0
    gpu_ms: Duration = 0.0
    """What they were billed of whole GPUs together."""


class SampledCall(msgspec.Struct, frozen=True, array_like=True):
    """One call of a window, as an example."""

    call_id: ShortText
    at_ns: Rising
    """When it ended."""
    total_us: Rising
    stages_us: Annotated[tuple[Rising, ...], Meta(max_length=16)] = ()
    """In the order of `STAGES`; those that are missing are 0."""
    code: ShortText = ""
    """Why it failed; "": it ended well."""
    batch_size: Count = 1
    attempts: Count = 1
    is_cold: bool = False
    """It waited for the start of a container."""
    weight: Duration = 1.0
    """How many calls it stands for among `samples`."""


class FunctionTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one gateway, or several together, saw of the calls of one function in a window."""

    since_ns: Rising = 0
    until_ns: Rising = 0
    """The window; of a merged tally from the first to the last instant of its parts."""
    arrivals: Count = 0
    """Calls that arrived, those that are inside still among them."""
    ended: Count = 0
    """Calls that ended well."""
    failures: SmallCounts = {}
    """Calls that failed or were refused, by code."""
    gone: Count = 0
    """Calls whose client hung up: of no code, and in no duration."""
    good: SmallCounts = {}
    """By service level (availability, unary, first_chunk, gap): calls that kept it."""
    bad: SmallCounts = {}
    """... and that did not."""
    durations: SketchCounts = SketchCounts()
    """From arrival to answer, of calls that ended well."""
    failed_durations: SketchCounts = SketchCounts()
    stages: Annotated[dict[ShortText, SketchCounts], Meta(max_length=16)] = {}
    """By stage, of calls that ended well and spent time in it: of others it was 0. Of minutes with many calls each
    fourth counts for four."""
    first_chunks: SketchCounts = SketchCounts()
    """From arrival to the first chunk of streams."""
    gaps: SketchCounts = SketchCounts()
    """Between the chunks of streams."""
    cold_calls: Count = 0
    """Calls that waited for the start of a container."""
    cold_steps: SmallSums = {}
    """Milliseconds that they waited, by step of the start."""
    batches: Annotated[dict[Annotated[int, Meta(ge=0, le=2**31)], BatchTally], Meta(max_length=MOST_SIZES)] = {}
    """By the size of their batch; above 16 by the power of two from which on sizes count together."""
    attempts: Count = 0
    """Starts of calls that ended, retries among them."""
    retried: Count = 0
    """Calls that had more than one."""
    body_in: Rising = 0
    """Bytes of inputs as msgpack."""
    body_out: Rising = 0
    """Bytes of outputs."""
    busy_ns: Rising = 0
    """What these calls were metered: of a batch the parts of its calls are its time together."""
    units: Units = {}
    """What the function counted, such as prompt_tokens and completion_tokens. The tenant's word."""
    unread_ms: Duration = 0.0
    """How long chunks waited for a client that did not read."""
    inside_ms: Duration = 0.0
    """Calls inside, times time: divided by the window, how many there were on average."""
    inside: Count = 0
    """Calls inside at the window's end."""
    samples: Annotated[tuple[SampledCall, ...], Meta(max_length=MOST_SAMPLES)] = ()
    """Calls that ended well, drawn by chance; each says how many it stands for."""
    slowest: Annotated[tuple[SampledCall, ...], Meta(max_length=MOST_SLOWEST)] = ()
    """Of those that ended well, the slowest first."""


class HomeTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the home of a function saw of it in a window: integrals over time, in seconds."""

    since_ns: Rising = 0
    until_ns: Rising = 0
    seen_s: Duration = 0.0
    """For how much of the window there was a home that looked."""
    queued_s: Duration = 0.0
    """Calls that waited, times time: divided by `seen_s`, the mean queue."""
    running_s: Duration = 0.0
    """Calls in containers, times time."""
    ready_s: Duration = 0.0
    """Ready containers, times time."""
    starting_s: Duration = 0.0
    wanted_s: Duration = 0.0
    """Containers that the controller wants, times time, as far as it says."""
    shortage_s: Duration = 0.0
    """For how long the controller said that there is no room for another container."""
    idle_credit_s: Duration = 0.0
    """For how long calls waited while a container had room for them: more than a little is a fault of the platform."""
    slots_s: Duration = 0.0
    """Places for calls in ready containers, times time."""
    busy_s: Duration = 0.0
    """Ready containers that held a call, times time."""
    most_queued: Count = 0
    most_ready: Count = 0
    oldest_ms: Duration = 0.0
    """The longest that a waiting call had waited."""


class GatewayTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a gateway itself was in a window."""

    gateway: ShortText = ""
    """Its name, for operators."""
    process: ShortText = ""
    """Names this run of it, for tenants; "": a release of before."""
    since_ns: Rising = 0
    until_ns: Rising = 0
    loop_share: Duration = 0.0
    """Part of the time in which its one thread worked: 1 is all of it."""
    late_ms: Duration = 0.0
    """The most that a timer of its event loop was late."""
    late_mean_ms: Duration = 0.0
    link_in: Rising = 0
    """Bytes over its links and the bus, in."""
    link_out: Rising = 0
    calls: Count = 0
    """That ended."""


class CallTotals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one gateway counted of a function's calls since it began, for metrics: numbers that only rise."""

    ended: Count = 0
    failures: SmallCounts = {}
    """By code."""
    durations: HistogramCounts = ()
    """Of calls that ended well, by bucket. `tally.tally_totals` has the bounds."""
    durations_s: Duration = 0.0
    """Their sum."""
    first_chunks: HistogramCounts = ()
    first_chunks_s: Duration = 0.0
    gaps: HistogramCounts = ()
    gaps_s: Duration = 0.0
    cold_calls: Count = 0
    retried: Count = 0
    gpu_ms: Duration = 0.0
    batched: Count = 0
    """Calls whose batch is known."""
    batch_sizes: Duration = 0.0
    """The sum of the sizes of their batches."""
    units: Units = {}


class ToldTally(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function's tally of one step of the window that was asked for."""

    function: ShortText
    """`tenant:app.function` of its owner; `tenant:` of a tenant's functions that have none of their own."""
    version: ShortText = ""
    """"": of none, such as a call that was refused before its version was known."""
    arm: ShortText = ""
    """`JOBS`: of runs of jobs; "": of calls whose callers wait."""
    step: Count = 0
    """Which step, the oldest first; 0: the window is one."""
    tally: FunctionTally | None = None
    home: HomeTally | None = None
    """At the gateway that is the function's home."""
    totals: CallTotals | None = None
    """If they were asked for: then there is no `tally`."""
