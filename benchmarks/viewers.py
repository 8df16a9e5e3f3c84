"""What people who look cost people who call: the p99 of calls with 50 viewers of the fleet's page, and without.

Calls come at a rate whatever comes back, in turns with and without viewers, so that a drift of the machine hits both.
Each viewer holds the live stream of the page as a browser does.

    p99_ms, p50_ms          of calls without viewers: the median of turns
    p99_more, p50_more      how much longer with viewers: 0.05 is one in twenty
    p99_error               the standard error of the first
    dashboard_cores         cores that the dashboard's process takes with them
    changes_per_s           messages of one viewer's stream in a second
    gateway_ms_per_s        processor time of the gateway that all of them take in a second, and ..._one what one alone
                            takes: the rest is what each more of them costs. Without calls, so a busy machine may tell
    dashboard_ms_per_s      the same of the dashboard's process, and ..._one

    --rate                  calls a second (1,000): less where a machine has no room for so many; 0: no calls are made,
                            and what they would show is left out
"""

from __future__ import annotations

import asyncio
import json
import math
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from benchmarks import report
from benchmarks.http_load import Answer, Caller
from benchmarks.overhead import BODY, ERROR_OF_SPREAD
from tests.system.support.platform import Platform, platform

REF = "bench.echo"
VIEWERS, OF_SESSION = 50, 4
TURN_S, QUIET_S = 6.0, 12.0
SETTLED_S = 30.0
OPTIONS = ("--blanks", "1", "--cpu-slots", "4", "--fake-gpus", "8xH100:mig,8xT4")
PAGE = "/ui/fleet"
LIVE_PAGES = (PAGE, "/ui/functions", "/ui/overview")
"""That a browser's stream is about: a fleet at rest does not change."""
LOOKED_AT = ("gateway", "dashboard")
OWN_PAGE = {"sec-fetch-site": "same-origin"}


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("viewers", __doc__ or "")
    parser.add_argument("--rate", type=float, default=1_000.0)
    options = report.parsed(parser)
    pairs = 2 if options.quick else 8
    with (
        tempfile.TemporaryDirectory() as folder,
        platform(Path(folder), *OPTIONS, env={"PILOTLIGHT_DASHBOARD": "on"}) as running,
    ):
        running.deploy("benchmarks/functions/app.py")
        running.output(REF, text="hello")
        figures = asyncio.run(compared(running, options.rate, pairs))
    report.finish("viewers", figures | {"rate": options.rate})


async def compared(running: Platform, rate: float, pairs: int) -> dict[str, float]:
    """The figures."""
    cookies = await sessions(running)
    taken = await cost_of_looking(running, cookies)
    if not rate:
        return taken
    await turn(running, rate)
    rows: list[dict[bool, tuple[float, float]]] = []
    busy, changes = [], []
    pid = running.pids["dashboard"]
    for number in range(pairs):
        found: dict[bool, tuple[float, float]] = {}
        for has_viewers in (True, False) if number % 2 else (False, True):
            if not has_viewers:
                found[False] = await turn(running, rate)
                continue
            async with watched(running, cookies) as seen:
                before, used = sum(seen), report.cpu_seconds(pid)
                found[True] = await turn(running, rate)
                busy.append((report.cpu_seconds(pid) - used) / TURN_S)
                changes.append((sum(seen) - before) / VIEWERS / TURN_S)
        rows.append(found)
    more = [each[True][1] / each[False][1] - 1.0 for each in rows]
    spread = report.median([abs(each - report.median(more)) for each in more])
    return taken | {
        "p50_ms": report.median([each[False][0] for each in rows]),
        "p99_ms": report.median([each[False][1] for each in rows]),
        "p50_more": report.median([each[True][0] / each[False][0] - 1.0 for each in rows]),
        "p99_more": report.median(more),
        "p99_error": ERROR_OF_SPREAD * spread / math.sqrt(pairs),
        "dashboard_cores": report.median(busy),
        "changes_per_s": report.median(changes),
    }


async def cost_of_looking(running: Platform, cookies: list[str]) -> dict[str, float]:
    """Milliseconds of a processor a second that viewers take, beyond what there is without them; nobody calls."""

    async def used() -> dict[str, float]:
        before = {name: report.exact_cpu_seconds(running.pids[name]) for name in LOOKED_AT}
        await asyncio.sleep(QUIET_S)
        return {
            name: 1e3 * (report.exact_cpu_seconds(running.pids[name]) - before[name]) / QUIET_S for name in LOOKED_AT
        }

    without = await used()
    found: dict[str, float] = {}
    for count, suffix in ((1, "_one"), (VIEWERS, "")):
        async with watched(running, cookies, count):
            having = await used()
        found |= {f"{name}_ms_per_s{suffix}": having[name] - without[name] for name in LOOKED_AT}
    return found


async def turn(running: Platform, rate: float) -> tuple[float, float]:
    """The p50 and the p99 of calls at a rate, in milliseconds: from when each was to be sent."""
    caller, loop = Caller(running.url, REF, running.key), asyncio.get_running_loop()
    body, began_at = BODY.encode(), loop.time()

    async def call(due_at: float) -> float:
        answer: Answer = await caller.post(body)
        assert answer.status == 200, answer
        return (time.monotonic() - due_at) * 1_000.0

    async with asyncio.TaskGroup() as group:
        calls = []
        for number in range(int(rate * TURN_S)):
            due_at = began_at + number / rate
            if (wait := due_at - loop.time()) > 0:
                await asyncio.sleep(wait)
            calls.append(group.create_task(call(due_at)))
    caller.close()
    took = sorted(each.result() for each in calls)
    return took[len(took) // 2], took[int(len(took) * 0.99)]


@asynccontextmanager
async def watched(running: Platform, cookies: list[str], count: int = VIEWERS) -> AsyncIterator[list[int]]:
    """The page is looked at by so many until the block ends; what each has had of changes."""
    seen = [0] * count
    limits = httpx.Limits(max_connections=2 * VIEWERS)
    async with (
        httpx.AsyncClient(base_url=url_of(running), limits=limits, timeout=30.0) as client,
        asyncio.TaskGroup() as group,
    ):
        viewers = [(cookies[number // OF_SESSION], number, asyncio.Event()) for number in range(count)]
        looking = [group.create_task(look(client, *viewer, seen)) for viewer in viewers]
        async with asyncio.timeout(SETTLED_S):
            for _, _, has_page in viewers:
                await has_page.wait()
        yield seen
        for each in looking:
            each.cancel()


async def sessions(running: Platform) -> list[str]:
    """Cookies of as many sessions as the viewers need; an address logs in once a second."""
    found: list[str] = []
    async with httpx.AsyncClient(base_url=url_of(running), timeout=30.0) as client:
        while len(found) * OF_SESSION < VIEWERS:
            answer = await client.post("/ui/login", data={"key": running.key}, headers=OWN_PAGE)
            client.cookies.clear()
            if cookie := answer.headers.get("set-cookie"):
                found.append(cookie.partition(";")[0])
            else:
                await asyncio.sleep(1.0)
    return found


def url_of(running: Platform) -> str:
    """Where the dashboard is."""
    return str(json.loads(running.ready_file.read_text())["dashboard_url"])


async def look(client: httpx.AsyncClient, cookie: str, number: int, has_page: asyncio.Event, seen: list[int]) -> None:
    """Hold the page's stream as a browser does; `has_page` is set once it has told how the page is."""
    headers = {"cookie": cookie, "accept": "text/event-stream"}
    (await client.get(PAGE, headers=headers)).raise_for_status()
    async with client.stream("GET", "/ui/events", params={"page": LIVE_PAGES}, headers=headers, timeout=None) as stream:
        stream.raise_for_status()
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                seen[number] += 1
                has_page.set()


if __name__ == "__main__":
    main()
