"""`pilotlight job`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, bar, note, print_json, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.values import to_json

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Id = Annotated[str, typer.Argument(help="the job's id, or the id that its client gave it")]
PAGE = 1_000
NUMBERS = ("attempts", "starts", "took")
LESS = ("starts", "took", "attempts", "created")
"""Columns that a narrow window goes without."""
SHOWN = ("id", "version", "state", "attempts", "reason", "run")
STILL_RUNS = "It ran: a plain function runs on until it returns, and keeps its slot until then."


@app.callback()
def group() -> None:
    """Durable calls, stored before they are accepted."""


@app.command(name="list")
def list_jobs(
    state: Annotated[str, typer.Option(help="only these, with commas between: failed,expired")] = "",
    function: Annotated[str, typer.Option(help="only this function's: app.function")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", help="how many", min=1)] = 50,
    as_json: Json = False,
) -> None:
    """List jobs, the last changed first.

    \b
    pilotlight job list --state failed,expired
    """
    jobs = _jobs(state, function, limit)
    if as_json:
        print_json(jobs)
        return
    columns = ("job", "function", "state", "attempts", "created", "starts", "took", "reason")
    print_table(columns, [_row(job) for job in jobs], empty="No jobs.", right=NUMBERS, less=LESS)


@app.command()
def get(
    id: Id,  # noqa: A002 - what the API calls it
    wait: Annotated[float, typer.Option(help="seconds to wait for its end", min=0.0)] = 0.0,
    as_json: Json = False,
) -> None:
    """Show a job's times and its place in the queue. Its answer goes to stdout.

    \b
    pilotlight job get call_local_4_… --wait 60
    """
    job = _job(id, wait)
    if as_json:
        print_json(to_json(job))
        return
    for name, text in [*((name, job.get(name)) for name in SHOWN), *_times(job, time.time())]:
        if text is not None:
            note(f"{name:>10}  {text}")
    if (error := job.get("error")) is not None:
        note(f"     error  {error['detail']}")
        if error.get("traceback"):
            note(error["traceback"].rstrip())
    if job["state"] == "succeeded":
        print_json(to_json(job.get("output")))


@app.command()
def cancel(id: Id, as_json: Json = False) -> None:  # noqa: A002 - what the API calls it
    """End a job. A waiting one never runs; a running one is asked to stop.

    A generator stops at its next chunk, an async function at its next await. A plain function cannot be interrupted: it
    keeps its slot, and is billed, until it returns or its timeout is over; its result is dropped.

    \b
    pilotlight job cancel call_local_4_…
    """
    ran = not as_json and ask(client().jobs.get_status(id))["state"] == "running"
    alive = ask(client().jobs.cancel(id))
    if as_json:
        print_json({"id": id, "cancelled": alive})
    elif alive and ran:
        note(f"{id} is cancelled. {STILL_RUNS}")
    else:
        note(f"{id} {'is cancelled' if alive else 'had ended'}.")


@app.command()
def redrive(
    ids: Annotated[list[str] | None, typer.Argument(help="jobs that failed, expired or were cancelled")] = None,
    function: Annotated[str, typer.Option(help="all dead jobs of this function: app.function")] = "",
    as_json: Json = False,
) -> None:
    """Queue dead jobs anew, with all their retries.

    \b
    pilotlight job redrive call_local_4_…
    pilotlight job redrive --function shop.charge
    """
    if bool(ids) == bool(function):
        raise typer.BadParameter("name jobs, or --function")
    names = ids or [job["id"] for job in _jobs("failed,expired", function, None)]
    driven = []
    with bar("redrive", len(names)) as advance:
        for name in names:
            driven.append(ask(client().jobs.redrive(name)))
            advance(len(driven), "")
    if as_json:
        print_json(driven)
    else:
        note(f"{len(driven)} queued anew.")


def _job(name: str, wait: float) -> dict[str, Any]:
    end = time.monotonic() + wait
    while True:
        left = max(0.0, end - time.monotonic())
        job: dict[str, Any] = ask(client().jobs.get_status(name, wait=min(left, 25.0)))
        if job["state"] not in ("queued", "running") or left <= 0:
            return job


def _jobs(state: str, function: str, limit: int | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while limit is None or len(found) < limit:
        size = PAGE if limit is None else min(PAGE, limit - len(found))
        page = ask(client().jobs.list_page(state=state, function=function, limit=size, cursor=cursor))
        found += page["jobs"]
        cursor = page["next"] or ""
        if not cursor:
            break
    return found


def _times(job: dict[str, Any], at: float) -> list[tuple[str, str | None]]:
    """Return the times of a job as text; `at` is now."""
    state, began, ended = job["state"], job.get("started_at"), job.get("ended_at")
    shown: list[tuple[str, str | None]] = [("created", _instant(job["created_at"], at))]
    if tick := job.get("tick"):
        shown.append(("tick", _instant(tick, at)))
    if state == "queued":
        if job.get("run_at", 0.0) > at:
            shown.append(("not before", _instant(job["run_at"], at)))
        shown.append(("place", _place(job)))
        shown.append(("waits for", job.get("waits_for")))
        shown.append(("expires", _instant(job["expires_at"], at) if job.get("expires_at") else None))
    if began and state != "queued":
        shown.append(("started", _instant(began, at)))
    if state == "running" and began:
        shown.append(("runs for", span(at - began)))
    if ended:
        shown.append(("ended", _instant(ended, at) + (f", after {span(ended - began)}" if began else "")))
    return shown


def _place(job: dict[str, Any]) -> str | None:
    position, seconds = job.get("position"), job.get("starts_in_s")
    if position is None:
        return None
    place = f"{position} before it" if position else "next"
    return f"{place}, starts in about {span(seconds)}" if seconds is not None else place


def _instant(unix: float, at: float) -> str:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(unix))
    return f"{clock} ({span(at - unix)} ago)" if unix <= at else f"{clock} (in {span(unix - at)})"


def _row(job: dict[str, Any]) -> tuple[Any, ...]:
    wait = job.get("run_at", 0.0) - time.time()
    starts = f"in {span(wait)}" if job["state"] == "queued" and wait > 0 else "-"
    began, ended = job.get("started_at"), job.get("ended_at")
    took = span(ended - began) if began and ended else "-"
    reason = job.get("reason") or ""
    return job["id"], job["version"], job["state"], job["attempts"], ago(job["created_at"]), starts, took, reason
