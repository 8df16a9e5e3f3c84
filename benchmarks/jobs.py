"""How fast are durable jobs: submissions against raw synced publishes, the tail at half that rate, jobs end to end.

Three nats-server processes on this machine keep three copies of everything, each synced before it is confirmed, and one
gateway takes the submissions of 64 connections over HTTP. They are held against what the same servers do with as many
publishers that do nothing else: each waits for the confirmation of one message of a record's size before the next. Both
sides are 64 tasks of one Python process, and what was told is counted again in what is stored.

`submit_ratio` is of jobs that are due: while more are submitted they run, on the same machine, on a platform with one
agent. `submit_ratio_later` is of jobs that are due tomorrow, in turns with the publishers; `submit_ratio_later_wrk` the
same by wrk, which takes less of the machine for itself than a client in Python. A publisher is faster at the server
that leads its stream: each turn is at another server, and the middle one counts. The same is then reported for one
server (R1). End to end, a platform on the three servers runs jobs of a function that does nothing, from the first
submission to the last result.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx

from benchmarks import report, wrk
from benchmarks.http_load import Caller
from pilotlight_core.bus import Bus, BusError, StreamLimits, connect
from pilotlight_core.bus.streams import bucket_stream
from pilotlight_core.model.ids import new_call_id, token
from pilotlight_core.model.records.jobs import JobRecord
from pilotlight_core.model.subjects import JOB_BUCKET
from pilotlight_gateway.jobs.bus_jobs import BusJobs
from pilotlight_supervisor.embedded_bus import find_nats_server
from pilotlight_supervisor.free_ports import free_port
from tests.waiting import wait_until

SUBMITTERS = 64
TURNS = 3
SECONDS = 5.0
JOBS = 2_000
PATH = "/v1/functions/bench.echo/calls"
BODY = b'{"input":{"text":"hello"}}'
RECORD = bytes(450)
"""About what a job's record has of the same call."""
RAW = "RAW"
HOST = "127.0.0.1"
CONFIG = """\
server_name: "n{number}"
listen: "{host}:{port}"
jetstream {{ store_dir: "{store}", max_mem: 64MB, max_file: 64GB, sync_interval: always, strict: true
  limits {{ default_max_consumers: -1 }} }}
feature_flags {{ js_ack_fc_v2: false }}
max_payload: 4MB
ping_interval: "2s"
ping_max: 2
{cluster}"""
CLUSTER = 'cluster {{ name: "bench", listen: "{host}:{own}", routes: [{routes}] }}\n'


@dataclass(kw_only=True)
class Speed:
    """What one way of storing did: operations per second of each turn."""

    turns: list[float] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Of the middle turn."""
        return report.median(self.turns)

    @property
    def best(self) -> float:
        """Of the fastest turn."""
        return max(self.turns)


@dataclass(frozen=True, kw_only=True)
class Found:
    """Everything that was measured on one bus."""

    raw: Speed
    later: Speed
    """Submissions of jobs that are not due."""
    later_wrk: Speed
    record: Speed
    """Records alone, written as a gateway writes them: what is left of `later` is HTTP and the gateway."""
    p50_half: float
    p99_half: float
    due: Speed
    """Submissions of jobs that run meanwhile."""


@contextmanager
def servers(folder: Path, count: int) -> Iterator[str]:
    """`count` nats-servers, as a cluster if there are several; their addresses, with commas between."""
    ports, routes = [free_port() for _ in range(count)], [free_port() for _ in range(count)]
    listed = ", ".join(f'"nats://{HOST}:{port}"' for port in routes)
    processes = []
    try:
        for number, (port, own) in enumerate(zip(ports, routes, strict=True)):
            place = folder / f"n{number}"
            place.mkdir()
            cluster = CLUSTER.format(host=HOST, own=own, routes=listed) if count > 1 else ""
            config = CONFIG.format(number=number, host=HOST, port=port, store=place, cluster=cluster)
            (place / "nats.conf").write_text(config)
            with (place / "log").open("wb") as log:
                processes.append(
                    subprocess.Popen([find_nats_server(), "-c", place / "nats.conf"], stdout=log, stderr=log)
                )
        yield ",".join(f"nats://{HOST}:{port}" for port in ports)
    finally:
        _end(processes)


@contextmanager
def part(module: str, folder: Path, nats: str, *options: str) -> Iterator[None]:
    """A process of the platform."""
    command = [sys.executable, "-m", module, "--state-dir", str(folder), "--name", module.replace(".", "-"), *options]
    with (folder / f"{module}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "PILOTLIGHT_NATS_URL": nats})
        try:
            yield
        finally:
            _end([process])


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def gateway(folder: Path, nats: str, copies: int) -> Iterator[tuple[str, str]]:
    """A gateway; its address and an admin's key."""
    port, client = free_port(), folder / "client.json"
    with part(
        "pilotlight_gateway", folder, nats,
        "--port", str(port), "--replicas", str(copies), "--bootstrap-client-file", str(client),
    ):  # fmt: skip
        url = f"http://{HOST}:{port}"
        wait_until(lambda: client.exists() and _is_ready(url), "the gateway is ready", 60.0)
        yield url, json.loads(client.read_text())["api_key"]


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


async def _at_full_speed(work: Callable[[], Awaitable[None]], seconds: float) -> float:
    """How often `work` is done in a second by each of 64 at once, over `seconds`."""
    done, end = 0, time.monotonic() + seconds

    async def one() -> None:
        nonlocal done
        while time.monotonic() < end:
            await work()
            done += 1

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(SUBMITTERS):
            group.create_task(one())
    return done / (time.monotonic() - began)


@asynccontextmanager
async def raw_publisher(nats: str, copies: int) -> AsyncIterator[Bus]:
    """A connection, and a stream for what it publishes."""
    async with connect(nats, name="raw", limits=StreamLimits(replicas=copies), makes_streams=False) as bus:
        config = {
            "name": RAW, "subjects": ["raw.>"], "storage": "file", "retention": "limits", "discard": "old",
            "num_replicas": copies, "max_bytes": 2**30, "duplicate_window": 120 * 10**9, "allow_direct": True,
        }  # fmt: skip
        await bus.jetstream.ensure_stream(config, 30.0)
        yield bus


async def _create(store: BusJobs) -> None:
    """A job's record, as a gateway writes it; of a tenant whose jobs nobody runs."""
    at = time.time()
    call = new_call_id("local", 1, at)
    await store.create(
        JobRecord(
            id=call, tenant="nobody", function="nobody:bench.echo", version="ver_" + "0" * 32,
            ref="bench.echo@v1", input=BODY, submission=call, created_at=at, run_at=at + 86_400.0,
            expires_at=at + 172_800.0, keep_s=60.0,
        )
    )  # fmt: skip


async def _store(bus: Bus) -> None:
    """A message of a record's size."""
    await bus.jetstream.store(f"raw.{token()}", RECORD, message_id=token())


class Submitters:
    """Up to 64 connections that submit jobs; `more` goes with each: `run_at=…`."""

    def __init__(self, url: str, key: str, **more: float) -> None:
        self._caller = Caller(url, "bench.echo", key, "Prefer: respond-async")
        self._slots = asyncio.Semaphore(SUBMITTERS)
        self._more = more

    async def submit(self) -> None:
        """One job, accepted."""
        async with self._slots:
            answer = await self._caller.call(input={"text": "hello"}, **self._more)
        if answer.status != 202:
            raise RuntimeError(f"not accepted: {answer}")

    async def paced(self, rate: float, seconds: float) -> list[float]:
        """The milliseconds that submissions take which come at a steady rate, from when each was due."""
        took: list[float] = []

        async def one(due: float) -> None:
            await self.submit()
            took.append((time.monotonic() - due) * 1000)

        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(int(rate * seconds)):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                group.create_task(one(due))
        return took

    def close(self) -> None:
        """Hang up."""
        self._caller.close()


async def _measure(nats: str, copies: int, url: str, key: str, seconds: float) -> Found:
    """All but the jobs that are due."""
    raw, record, later, later_wrk = Speed(), Speed(), Speed(), Speed()
    tomorrow = time.time() + 86_400
    lines = Submitters(url, key, run_at=tomorrow)
    turns = list(islice(cycle(nats.split(",")), TURNS))
    for server in turns:
        async with raw_publisher(server, copies) as bus:
            raw.turns.append(await _at_full_speed(partial(_store, bus), seconds))
            later.turns.append(await _submitted(bus, lines, seconds))
            later_wrk.turns.append(await _submitted_by_wrk(bus, url, key, tomorrow, seconds))
    took = await lines.paced(later.per_s / 2, seconds)
    lines.close()
    for server in turns:  # behind the others: a hundred thousand records more make the bucket slower
        async with raw_publisher(server, copies) as bus:
            record.turns.append(await _at_full_speed(partial(_create, BusJobs(bus)), seconds))
    p50, p99 = report.percentile(took, 50), report.percentile(took, 99)
    return Found(raw=raw, record=record, later=later, later_wrk=later_wrk, p50_half=p50, p99_half=p99, due=Speed())


async def _measure_due(nats: str, copies: int, url: str, key: str, seconds: float) -> Speed:
    """Submissions while those of before run."""
    due, lines = Speed(), Submitters(url, key)
    async with raw_publisher(nats.split(",")[0], copies) as bus:
        for _ in range(TURNS):
            due.turns.append(await _submitted(bus, lines, seconds))
    lines.close()
    return due


async def _submitted(bus: Bus, lines: Submitters, seconds: float) -> float:
    """Submissions per second, all of them accepted and stored."""
    before = await bus.jetstream.last_sequence(bucket_stream(JOB_BUCKET))
    per_s = await _at_full_speed(lines.submit, seconds)
    _check_stored(await bus.jetstream.last_sequence(bucket_stream(JOB_BUCKET)) - before, per_s * seconds)
    return per_s


async def _submitted_by_wrk(bus: Bus, url: str, key: str, run_at: float, seconds: float) -> float:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Prefer": "respond-async"}
    body = json.dumps({"input": {"text": "hello"}, "run_at": run_at})
    before = await bus.jetstream.last_sequence(bucket_stream(JOB_BUCKET))
    load = await asyncio.to_thread(wrk.post, url + PATH, body, headers, connections=SUBMITTERS, seconds=seconds)
    if load.errors:
        raise RuntimeError(f"not all are accepted: {load}")
    _check_stored(await bus.jetstream.last_sequence(bucket_stream(JOB_BUCKET)) - before, load.rps * seconds)
    return load.rps


def _check_stored(records: int, submitted: float) -> None:
    if records < submitted:
        raise RuntimeError(f"not all are stored: {records} records of {submitted:.0f} jobs")


def store_alone(copies: int, seconds: float) -> Found:
    """Publishes and submissions in turns, then submissions of what runs at once, on `copies` servers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with servers(folder, copies) as nats:
            wait_until(lambda: asyncio.run(_is_up(nats, copies)), "the bus is up", 60.0)
            with _deployed(folder, nats, copies) as (url, key):
                found = asyncio.run(_measure(nats, copies, url, key, seconds))
                with _workers(folder, nats):
                    asyncio.run(_warm(url, key))
                    return replace(found, due=asyncio.run(_measure_due(nats, copies, url, key, seconds)))


def end_to_end(copies: int, jobs: int) -> float:
    """Jobs per second from the first submission to the last result, on a platform with one agent."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with servers(folder, copies) as nats:
            wait_until(lambda: asyncio.run(_is_up(nats, copies)), "the bus is up", 60.0)
            with _deployed(folder, nats, copies) as (url, key), _workers(folder, nats):
                return asyncio.run(_run(url, key, jobs))


@contextmanager
def _workers(folder: Path, nats: str) -> Iterator[None]:
    """A controller, and an agent with one slot."""
    with (
        part("pilotlight_autoscaler", folder, nats),
        part("pilotlight_runtime", folder, nats, "--node", "local", "--blanks", "0", "--cpu-slots", "1"),
    ):
        yield


async def _warm(url: str, key: str) -> None:
    """Call the function once, so that its container is there."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120.0) as client:
        (await client.post(PATH, content=BODY)).raise_for_status()


@contextmanager
def _deployed(folder: Path, nats: str, copies: int) -> Iterator[tuple[str, str]]:
    with gateway(folder, nats, copies) as (url, key):
        env = {**os.environ, "PILOTLIGHT_URL": url, "PILOTLIGHT_API_KEY": key, "NO_COLOR": "1"}
        command = [sys.executable, "-m", "pilotlight.cli.main", "deploy", "benchmarks/functions/app.py"]
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=120)
        yield url, key


async def _run(url: str, key: str, jobs: int) -> float:
    lines = Submitters(url, key)
    headers = {"Authorization": f"Bearer {key}"}
    await _warm(url, key)
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60.0) as client:
        began, left = time.time(), jobs

        async def submitter() -> None:
            nonlocal left
            while left:
                left -= 1
                await lines.submit()

        async with asyncio.TaskGroup() as group:
            for _ in range(SUBMITTERS):
                group.create_task(submitter())
        # Looking costs as much as some jobs do: the jobs say themselves when they ended.
        while not await _all_ended(client):  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        took = await _last_end(client, jobs) - began
    lines.close()
    return jobs / took


async def _all_ended(client: httpx.AsyncClient) -> bool:
    async for _ in _listed(client, "queued,running", limit=1):
        return False
    return True


async def _last_end(client: httpx.AsyncClient, jobs: int) -> float:
    """When the last of all jobs ended, in unix seconds. The list may be behind for a moment."""
    for _ in range(50):
        ends = [float(job["ended_at"]) async for job in _listed(client, "succeeded", limit=500)]
        if len(ends) == jobs:
            return max(ends)
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{len(ends)} of {jobs} jobs have succeeded")


async def _listed(client: httpx.AsyncClient, states: str, *, limit: int) -> AsyncIterator[dict[str, Any]]:
    """The jobs in these states, `limit` to a page."""
    asked = {"state": states, "limit": str(limit)}
    while True:
        page = (await client.get("/v1/jobs", params=asked)).json()
        for job in page["jobs"]:
            yield job
        if page["next"] is None:
            return
        asked["cursor"] = page["next"]


async def _is_up(nats: str, copies: int) -> bool:
    """Whether streams can be made: a cluster elects a leader first."""
    try:
        async with connect(nats, name="ready", limits=StreamLimits(replicas=copies), timeout=2.0):
            return True
    except BusError:
        return False


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("jobs", (__doc__ or "").splitlines()[0]))
    seconds, jobs = (1.0, 300) if options.quick else (SECONDS, JOBS)
    three, one = store_alone(3, seconds), store_alone(1, seconds)
    done = end_to_end(3, jobs)
    rows = [
        (
            name,
            found.raw.per_s,
            found.record.per_s,
            found.later_wrk.per_s,
            found.later.per_s,
            found.due.per_s,
            found.due.per_s / found.raw.per_s,
            found.p50_half,
            found.p99_half,
        )
        for name, found in (("three servers, R3", three), ("one server, R1", one))
    ]
    columns = (
        "every write synced", "raw/s", "records/s", "later by wrk/s", "later/s", "due/s", "ratio", "p50 ms at half",
        "p99 ms at half",
    )  # fmt: skip
    report.table(f"{SUBMITTERS} submitters", columns, rows)
    report.table("end to end, R3", ("jobs", "jobs/s"), [(jobs, done)])
    report.finish(
        "jobs",
        {
            "submit_ratio": three.due.per_s / three.raw.per_s,
            "submit_ratio_later": three.later.per_s / three.raw.per_s,
            "submit_ratio_later_wrk": three.later_wrk.per_s / three.raw.per_s,
            "submit_ratio_of_best": three.due.per_s / three.raw.best,
            "submit_per_s": three.due.per_s,
            "submit_per_s_later": three.later.per_s,
            "submit_p99_ms_half": three.p99_half,
            "jobs_per_s": done,
            "raw_per_s": three.raw.per_s,
            "record_ratio": three.record.per_s / three.raw.per_s,
            "submit_ratio_r1": one.due.per_s / one.raw.per_s,
            "submit_per_s_r1": one.due.per_s,
            "submit_p99_ms_half_r1": one.p99_half,
        },
    )


if __name__ == "__main__":
    main()
