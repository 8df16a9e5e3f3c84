"""What an upstream function adds: 1,000 calls a second to an API outside that is simulated here, through the gateway, a
sandbox, its way out and TLS.

The API takes batches of 32, answers after 20 ms, and refuses (429) what is more than it works on at a time. Calls are
sent at random instants whether or not others were answered, and their time counts from the instant at which they were
to be sent. It needs root: the API's name is in a file of hosts that this run alone sees.
"""

from __future__ import annotations

import asyncio
import os
import random
import ssl
import sys
import tempfile
import textwrap
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from aiohttp import web

from benchmarks import report
from benchmarks.keep_alive import Line
from pilotlight_core.host.certificates.authority import CertificateAsk, issue_certificate
from tests.builders.certificates import an_authority
from tests.system.support.platform import Platform, platform
from tests.system.support.processes import descendants
from tests.waiting import wait_until

HOST, INSIDE = "upstream.example.com", "PILOTLIGHT_BENCHMARK_HOSTS"
RATE, LINES = 1_000.0, 160
WARM_S = 6.0
ANSWER_S = 0.02
TAKES = 8
"""Requests that the API works on at a time."""
BATCH = 32
PATH = "/v1/functions/front.rank/calls"
BODY = b'{"input":{"text":"hello"}}'
APP = '''
from pilotlight import App, Upstream, UpstreamBatch

app = App("front")
api = Upstream(
    "https://{host}:{port}/v1/rank", key="api-key", authority="api-authority",
    batch=UpstreamBatch("inputs", "outputs", size={batch}, wait_ms=5), concurrency=32, timeout=20,
)


@app.gpu_function(upstream=api, scaledown_window=600, max_containers={containers})
async def rank(text: str) -> int:
    """What the API says of a text."""
    found: int = await api.call(text)
    return found
'''


@dataclass
class SimulatedApi:
    """The API: what it has seen."""

    running: int = 0
    most_running: int = 0
    requests: int = 0
    inputs: int = 0
    refused: int = 0

    async def serve(self, request: web.Request) -> web.Response:
        """Answer the lengths of texts, or refuse."""
        if self.running >= TAKES:
            self.refused += 1
            return web.Response(status=429, headers={"retry-after": "0.05"})
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            inputs = (await request.json())["inputs"]
            await asyncio.sleep(ANSWER_S)
            self.requests += 1
            self.inputs += len(inputs)
            return web.json_response({"outputs": [len(each) for each in inputs]})
        finally:
            self.running -= 1


@dataclass
class Seen:
    """What callers saw."""

    latencies_ms: list[float] = field(default_factory=list)
    failed: int = 0


def enter_own_hosts() -> None:
    """Begin anew where the API's name leads to loopback: in a mount namespace of this run's own."""
    if os.environ.get(INSIDE):
        return
    hosts = Path(tempfile.mkdtemp()) / "hosts"
    hosts.write_text(Path("/etc/hosts").read_text() + f"127.0.0.1 {HOST}\n")
    script = 'mount --bind "$0" /etc/hosts && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", script, str(hosts), *sys.orig_argv]
    os.execvpe("unshare", words, {**os.environ, INSIDE: str(hosts)})  # noqa: S606 - this very program


@asynccontextmanager
async def serving(api: SimulatedApi, folder: Path) -> AsyncIterator[int]:
    """The API, over TLS; its port."""
    ask = CertificateAsk(name="api", hosts=(HOST,), server=True, days=1)
    files = issue_certificate(folder, ask, at=datetime.now(UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    app = web.Application()
    app.router.add_post("/v1/rank", api.serve)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    try:
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def deploy(running: Platform, folder: Path, port: int, authority: Path, containers: int) -> None:
    """The function, its secrets, and the operator's word."""
    running.http.patch("/v1/tenants/default", json={"network": [f"{HOST}:{port}"]}).raise_for_status()
    for name, value in (("api-key", "a-key-of-the-apis"), ("api-authority", authority.read_text())):
        running.http.put(f"/v1/secrets/{name}", json={"value": value}).raise_for_status()
    app = folder / "front.py"
    app.write_text(textwrap.dedent(APP).format(host=HOST, port=port, batch=BATCH, containers=containers))
    running.deploy(app)


async def send(lines: asyncio.Queue[Line], due_at: float, seen: Seen) -> None:
    """One call, whose time counts from `due_at`."""
    line = await lines.get()
    try:
        answer = await line.post(PATH, BODY, 20.0)
    finally:
        lines.put_nowait(line)
    if answer is not None and answer.status == 200:
        seen.latencies_ms.append((time.monotonic() - due_at) * 1000)
    else:
        seen.failed += 1


async def load(running: Platform, rate: float, seconds: float) -> Seen:
    """So many calls a second, at random instants."""
    lines: asyncio.Queue[Line] = asyncio.Queue()
    for _ in range(LINES):
        lines.put_nowait(Line(running.url, running.key))
    seen, due_at, calls = Seen(), time.monotonic(), random.Random(7)
    ends_at = due_at + seconds
    async with asyncio.TaskGroup() as group:
        while due_at < ends_at:
            due_at += calls.expovariate(rate)
            await asyncio.sleep(max(0.0, due_at - time.monotonic()))
            group.create_task(send(lines, due_at, seen))
    while not lines.empty():
        lines.get_nowait().close()
    return seen


async def measure(running: Platform, folder: Path, authority: Path, *, seconds: float, rate: float) -> dict[str, float]:
    """The figures of one run."""
    api = SimulatedApi()
    async with serving(api, folder) as port:
        await asyncio.to_thread(deploy, running, folder, port, authority, 1)
        await asyncio.to_thread(
            wait_until, lambda: running.call("front.rank", text="hello").status_code == 200, "the API is reached", 60.0
        )
        await load(running, rate / 2, WARM_S)
        before, api.refused, api.requests, api.inputs = cpu_by_process(running), 0, 0, 0
        seen = await load(running, rate, seconds)
        spent = {name: after - before.get(name, 0.0) for name, after in cpu_by_process(running).items()}
    calls = len(seen.latencies_ms)
    report.table(
        f"{rate:g} calls/s for {seconds:g} s, {report.machine()}",
        ("calls", "failed", "p50 ms", "p95 ms", "p99 ms", "in a request", "refused by the API"),
        [(
            calls, seen.failed, *(f"{report.percentile(seen.latencies_ms, p):.1f}" for p in (50, 95, 99)),
            f"{api.inputs / max(1, api.requests):.1f}", api.refused,
        )],
    )  # fmt: skip
    report.table("processor, us per call", tuple(spent), [tuple(f"{cpu / calls * 1e6:.0f}" for cpu in spent.values())])
    return {
        "p50_ms": report.percentile(seen.latencies_ms, 50),
        "p95_ms": report.percentile(seen.latencies_ms, 95),
        "p99_ms": report.percentile(seen.latencies_ms, 99),
        "calls_per_s": calls / seconds,
        "failed": seen.failed,
        "inputs_per_request": api.inputs / max(1, api.requests),
        "refused": api.refused,
    } | {f"{name}_us_per_call": cpu / calls * 1e6 for name, cpu in spent.items()}  # fmt: skip


def cpu_by_process(running: Platform) -> dict[str, float]:
    """Seconds of processor of each process of the platform, and of those in and about sandboxes."""
    pids = running.pids
    found = {name: report.cpu_seconds(pid) for name, pid in pids.items()}
    return found | {"below_agent": sum(map(report.cpu_seconds, descendants(pids["agent"])))}


def main() -> None:
    """Measure, and say so."""
    parser = report.arguments("upstream", (__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rate", type=float, default=RATE, help="calls a second")
    options = report.parsed(parser)
    enter_own_hosts()
    seconds = 3.0 if options.quick else 20.0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        authority = an_authority(folder)
        env = {"PILOTLIGHT_EGRESS_ALLOW": "127.0.0.0/8"}
        with platform(folder, env=env) as running:
            figures = asyncio.run(measure(running, folder, authority, seconds=seconds, rate=options.rate))
    report.finish("upstream", figures)


if __name__ == "__main__":
    main()
