"""`pilotlight stats`: what the calls of functions were lately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.arguments import read_ref
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.printable import unheard_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.seeing.tally_api import FunctionStats, JobRunStats, Quantiles, StatsList

app = command_app()
LISTED = ("function", "calls", "per s", "failed", "p50", "p95", "cold", "GPU s", "job runs", "queued", "containers")
STEPS = ("from", "calls", "failed", "p50", "p95", "queued", "containers", "GPU s", "job runs")


@app.command()
@advising(not_found=DEPLOYED)
def stats(
    function: Annotated[str, typer.Argument(help="app.function; without it all of your functions in short")] = "",
    window: Annotated[str, typer.Option(help="how far back: 10m, 2h, at most 24h")] = "10m",
    step: Annotated[str, typer.Option(help="of a function: also by steps of so long, such as 1m")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show what the calls of functions were lately.

    How many there were and how they ended, how long they took and in which stage, the batches that they ran in, the
    queue and the containers. Durations are right within 2 %, and of all gateways that answer.

    \b
    pilotlight stats
    pilotlight stats search.embed
    pilotlight stats search.embed --window 2h --step 10m
    pilotlight stats search.embed --json
    """
    if function:
        found, _ = read_ref(function, None)
        one = ask(client().stats.get_stats(str(found), window, step))
        if as_json:
            print_json(one)
            return
        for line in lines_of(one):
            print_text(line)
        if step:
            _print_series(one)
        _note_silent(one.silent)
        return
    every = ask(client().stats.list_stats(window))
    if as_json:
        print_json(every)
        return
    _print_list(every)
    _note_silent(every.silent)


def lines_of(found: FunctionStats) -> Iterator[str]:
    """One function in words and numbers."""
    yield f"{found.function}: {found.calls} calls in {_span(found.window_s)}, {found.per_s:.3g}/s"
    if found.failed:
        yield "  failed      " + ", ".join(f"{count} {code}" for code, count in found.failed.items())
    if found.availability is not None:
        kept = [f"{100 * part:.4g} % {level}" for level, part in found.levels.items() if level != "availability"]
        yield "  available   " + ", ".join([f"{100 * found.availability:.4g} %", *kept])
    if found.durations.count:
        yield f"  duration    {_durations(found.durations)}"
    for stage, spent in found.stages.items():
        yield f"    {stage:<12}{_durations(spent)}  ({spent.count} calls)"
    if found.first_chunks.count:
        yield f"  first chunk {_durations(found.first_chunks)}"
    if found.gaps.count:
        yield f"  chunk gaps  {_durations(found.gaps)}"
    if found.cold_calls:
        steps = ", ".join(f"{step} {_ms(ms / found.cold_calls)}" for step, ms in found.cold_steps.items())
        yield f"  cold        {found.cold_calls} calls waited for a start: {steps}"
    if found.gpu_ms:
        yield f"  GPU         {found.gpu_ms / 1000:.4g} s of whole devices, batches of {found.batch_size:.3g}"
    for unit, count in found.units.items():
        yield f"  {unit:<12}{count}"
    yield from _job_lines(found.jobs)
    home = found.home
    if home.seen_s:
        yield f"  queue       {home.queued:.3g} on average, at most {home.most_queued}, oldest {_ms(home.oldest_ms)}"
        yield f"  containers  {home.ready:.3g} ready, {home.busy:.3g} busy, {home.starting:.3g} starting"


def _job_lines(jobs: JobRunStats) -> Iterator[str]:
    if not jobs.runs:
        return
    failed = "".join(f", {count} {code}" for code, count in jobs.failed.items())
    yield f"  jobs        {jobs.runs} runs beside these calls, {jobs.per_s:.3g}/s{failed}"
    if jobs.durations.count:
        yield f"    duration  {_durations(jobs.durations)}"
    if jobs.gpu_ms:
        yield f"    GPU       {jobs.gpu_ms / 1000:.4g} s of whole devices, batches of {jobs.batch_size:.3g}"


def _durations(found: Quantiles) -> str:
    return f"p50 {_ms(found.p50)}, p95 {_ms(found.p95)}, p99 {_ms(found.p99)}, at most {_ms(found.max)}"


def _ms(ms: float) -> str:
    return f"{ms / 1000:.3g} s" if ms >= 1_000 else f"{ms:.3g} ms"


def _span(seconds: float) -> str:
    return f"{seconds / 60:.3g} min" if seconds < 7_200 else f"{seconds / 3_600:.3g} h"


def _print_series(found: FunctionStats) -> None:
    rows = [
        (
            point.at[11:16], point.calls, point.failed, _ms(point.p50_ms), _ms(point.p95_ms), f"{point.queued:.3g}",
            f"{point.ready:.3g}", f"{point.gpu_ms / 1000:.3g}", point.job_runs,
        )
        for point in found.series
    ]  # fmt: skip
    print_table(STEPS, rows, empty="There were no calls.", right=STEPS[1:], less=("GPU s", "job runs", "queued"))


def _print_list(found: StatsList) -> None:
    rows = [
        (
            row.function, row.calls, f"{row.per_s:.3g}", row.failed, _ms(row.p50_ms), _ms(row.p95_ms), row.cold_calls,
            f"{row.gpu_ms / 1000:.3g}", row.job_runs, f"{row.queued:.3g}", f"{row.ready:.3g}",
        )
        for row in found.functions
    ]  # fmt: skip
    empty = f"There were no calls in the last {_span(found.window_s)}."
    print_table(LISTED, rows, empty=empty, right=LISTED[1:], less=("GPU s", "job runs", "cold", "queued"))
    if found.total > len(found.functions):
        note(f"{found.total - len(found.functions)} functions with fewer calls are not listed.")


def _note_silent(silent: list[str]) -> None:
    if silent:
        note(f"Did not answer, and is missing: {unheard_text(silent)}.")
