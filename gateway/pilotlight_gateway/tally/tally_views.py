"""Windows as the HTTP API shows them."""

from __future__ import annotations

from datetime import UTC, datetime

from pilotlight_core.model.api.seeing.tally_api import (
    BatchStats,
    FunctionStats,
    GatewayStats,
    HomeStats,
    JobRunStats,
    Quantiles,
    SampleStats,
    StatsList,
    StatsPoint,
    StatsRow,
    VersionStats,
)
from pilotlight_core.model.errors import PLATFORMS_FAULT
from pilotlight_core.model.messages.seeing.tallies import STAGES, FunctionTally, GatewayTally, SampledCall, SketchCounts
from pilotlight_gateway.tally.sketch import count_of, mean_of, quantile_of
from pilotlight_gateway.tally.tally import calls_of, gpu_ms_of, stages_of
from pilotlight_gateway.tally.tally_window import FoundWindows, FunctionWindow
from pilotlight_gateway.tenancy.shown_names import shown_gateways

SHOWN_SAMPLES = 32
OTHER = "other"


def quantiles_of(sketch: SketchCounts) -> Quantiles:
    """What is shown of durations."""
    if not sketch.counts:
        return NO_QUANTILES
    p50, p90, p95, p99 = (round(quantile_of(sketch, part), 3) for part in (0.5, 0.9, 0.95, 0.99))
    return Quantiles(
        count=count_of(sketch),
        mean=round(mean_of(sketch), 3),
        p50=p50,
        p90=p90,
        p95=p95,
        p99=p99,
        max=round(sketch.most, 3),
    )


NO_QUANTILES = Quantiles()


def function_stats(window: FunctionWindow, series: list[FunctionWindow], *, operator: bool) -> FunctionStats:
    """One function, to operators with how gateways were."""
    tally, seconds = window.tally, window.seconds
    calls = calls_of(tally)
    answered, missed = tally.ended, tally.bad.get("availability", 0)
    levels = {
        level: round(tally.good.get(level, 0) / (tally.good.get(level, 0) + tally.bad.get(level, 0)), 6)
        for level in (*tally.good, *tally.bad)
        if tally.good.get(level, 0) + tally.bad.get(level, 0)
    }
    return FunctionStats(
        function=name_of_function(window.function),
        since=instant_text(window.since_ns),
        until=instant_text(window.until_ns),
        window_s=round(seconds, 3),
        arrivals=tally.arrivals,
        calls=calls,
        per_s=round(calls / seconds, 4),
        succeeded=tally.ended,
        failed=dict(sorted(tally.failures.items())),
        gone=tally.gone,
        availability=round(answered / (answered + missed), 6) if answered + missed else None,
        levels=levels,
        durations=quantiles_of(tally.durations),
        failed_durations=quantiles_of(tally.failed_durations),
        stages=stage_quantiles(tally),
        first_chunks=quantiles_of(tally.first_chunks),
        gaps=quantiles_of(tally.gaps),
        cold_calls=tally.cold_calls,
        cold_steps={step: round(ms, 3) for step, ms in tally.cold_steps.items()},
        batches=[
            BatchStats(size=size, calls=batch.calls, gpu_ms=round(batch.gpu_ms, 3))
            for size, batch in sorted(tally.batches.items())
        ],
        batch_size=batch_size_of(tally),
        gpu_ms=round(gpu_ms_of(tally), 3),
        attempts=tally.attempts,
        retried=tally.retried,
        body_in=tally.body_in,
        body_out=tally.body_out,
        units=dict(tally.units),
        unread_ms=round(tally.unread_ms, 3),
        inside=round(tally.inside_ms / 1000.0 / seconds, 4),
        jobs=job_run_stats(window.jobs, seconds),
        home=home_stats(window),
        gateways=[gateway_stats(each) for each in window.gateways] if operator else [],
        silent=shown_gateways(window.silent, operator=operator),
        versions=[
            version_stats(version, arm, part) for (version, arm), part in sorted(window.by_version.items()) if version
        ],
        slowest=[sample_stats(each) for each in tally.slowest],
        samples=[sample_stats(each) for each in tally.samples[:SHOWN_SAMPLES]],
        series=[point_of(each) for each in series],
    )


def job_run_stats(tally: FunctionTally, seconds: float) -> JobRunStats:
    """Runs of jobs."""
    runs = calls_of(tally)
    return JobRunStats(
        runs=runs,
        per_s=round(runs / seconds, 4),
        succeeded=tally.ended,
        failed=dict(sorted(tally.failures.items())),
        durations=quantiles_of(tally.durations),
        stages=stage_quantiles(tally),
        cold_runs=tally.cold_calls,
        batch_size=batch_size_of(tally),
        gpu_ms=round(gpu_ms_of(tally), 3),
        units=dict(tally.units),
    )


def stage_quantiles(tally: FunctionTally) -> dict[str, Quantiles]:
    """By stage, in the order of the stages."""
    return {stage: quantiles_of(tally.stages[stage]) for stage in STAGES if stage in tally.stages}


def batch_size_of(tally: FunctionTally) -> float:
    """On average over the calls; 0: it is known of none."""
    batched = sum(batch.calls for batch in tally.batches.values())
    return round(sum(size * each.calls for size, each in tally.batches.items()) / max(1, batched), 3)


def stats_list(found: FoundWindows, limit: int, *, operator: bool) -> StatsList:
    """The functions with the most calls."""
    return StatsList(
        since=instant_text(found.since_ns),
        until=instant_text(found.until_ns),
        window_s=round((found.until_ns - found.since_ns) / 1e9, 3),
        functions=[row_of(each) for each in found.windows[:limit]],
        total=len(found.windows),
        silent=shown_gateways(found.silent, operator=operator),
    )


def row_of(window: FunctionWindow) -> StatsRow:
    """One function in a list."""
    tally, seconds = window.tally, window.seconds
    calls = calls_of(tally)
    return StatsRow(
        function=name_of_function(window.function),
        calls=calls,
        per_s=round(calls / seconds, 4),
        failed=sum(tally.failures.values()),
        failed_by_platform=sum(count for code, count in tally.failures.items() if code in PLATFORMS_FAULT),
        p50_ms=round(quantile_of(tally.durations, 0.5), 3),
        p95_ms=round(quantile_of(tally.durations, 0.95), 3),
        cold_calls=tally.cold_calls,
        gpu_ms=round(gpu_ms_of(tally), 3),
        job_runs=calls_of(window.jobs),
        job_gpu_ms=round(gpu_ms_of(window.jobs), 3),
        queued=round(window.home.queued_s / seconds, 4),
        ready=round(window.home.ready_s / seconds, 4),
    )


def point_of(window: FunctionWindow) -> StatsPoint:
    """One step of a series."""
    tally, seconds = window.tally, window.seconds
    return StatsPoint(
        at=instant_text(window.since_ns),
        seconds=round(seconds, 3),
        calls=calls_of(tally),
        failed=sum(tally.failures.values()),
        p50_ms=round(quantile_of(tally.durations, 0.5), 3),
        p95_ms=round(quantile_of(tally.durations, 0.95), 3),
        first_chunk_p95_ms=round(quantile_of(tally.first_chunks, 0.95), 3),
        queued=round(window.home.queued_s / seconds, 4),
        running=round(window.home.running_s / seconds, 4),
        ready=round(window.home.ready_s / seconds, 4),
        cold_calls=tally.cold_calls,
        gpu_ms=round(gpu_ms_of(tally), 3),
        units=dict(tally.units),
        job_runs=calls_of(window.jobs),
        job_gpu_ms=round(gpu_ms_of(window.jobs), 3),
    )


def home_stats(window: FunctionWindow) -> HomeStats:
    """Means over a window."""
    home, seconds = window.home, window.seconds
    return HomeStats(
        seen_s=round(home.seen_s, 3),
        queued=round(home.queued_s / seconds, 4),
        running=round(home.running_s / seconds, 4),
        ready=round(home.ready_s / seconds, 4),
        starting=round(home.starting_s / seconds, 4),
        wanted=round(home.wanted_s / seconds, 4),
        slots=round(home.slots_s / seconds, 4),
        shortage=round(min(1.0, home.shortage_s / seconds), 4),
        idle_credit=round(min(1.0, home.idle_credit_s / seconds), 4),
        busy=round(home.busy_s / seconds, 4),
        most_queued=home.most_queued,
        oldest_ms=round(home.oldest_ms, 3),
    )


def gateway_stats(gateway: GatewayTally) -> GatewayStats:
    """How a gateway was."""
    return GatewayStats(
        gateway=gateway.gateway,
        loop_share=round(gateway.loop_share, 4),
        late_ms=round(gateway.late_ms, 3),
        link_in=gateway.link_in,
        link_out=gateway.link_out,
    )


def version_stats(version: str, arm: str, tally: FunctionTally) -> VersionStats:
    """The part of one version."""
    return VersionStats(
        version=version,
        arm=arm,
        calls=calls_of(tally),
        failed=sum(tally.failures.values()),
        durations=quantiles_of(tally.durations),
        gpu_ms=round(gpu_ms_of(tally), 3),
    )


def sample_stats(call: SampledCall) -> SampleStats:
    """One call."""
    return SampleStats(
        id=call.call_id,
        at=instant_text(call.at_ns),
        total_ms=call.total_us / 1000.0,
        stages=stages_of(call),
        code=call.code,
        batch_size=call.batch_size,
        attempts=call.attempts,
        cold=call.is_cold,
    )


def name_of_function(function: str) -> str:
    """`app.function` of `tenant:app.function`; "other" of those that had no room of their own."""
    return function.partition(":")[2] or OTHER


def instant_text(at_ns: int) -> str:
    """ISO 8601, UTC, to the millisecond."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
