"""What a platform over hosts costs: each process in a network namespace of this machine, with an address of its own.

Needs root, since it makes the namespaces; the kernel takes them away when it ends.

    tls_cpu_ratio        processor time of all processes of the platform for a call, with TLS on the bus, the API and
                         the listener for large bodies, over that of one that speaks plain: the median of turns with
                         TLS, each over the mean of the turns without before and after it
    bus_tls_cpu_ratio    the same with TLS on bus and listener alone, as behind a proxy that ends that of the API
    same_cpu_ratio       the same of every other turn without, over those around it: 1, but for the machine

Three platforms run side by side and take turns, so that the machine's drift falls on all alike. All have the same 64
callers (wrk), whose own work, TLS included, is not counted; nor are the store and the handshakes, which come before a
turn.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import httpx

from benchmarks import report, wrk
from benchmarks.overhead import answers_by_status
from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import why_no_namespaces
from tests.system.support.processes import descendants

APP = Path(__file__).parent / "functions" / "app.py"
REF, BODY = "bench.echo", '{"input": {"text": "hello"}}'
CALLERS = 64
SETTLED_S, SPARE_S = 1.0, 2.0
"""Before a turn, with its handshakes, and after it."""
METRICS_PORT = 9100
OTHERS = ("s3",)
"""Processes on hosts that are not the platform's."""

Processes: TypeAlias = Mapping[tuple[str, int], float]
"""Seconds that each process has used so far, by part and pid."""


@dataclass(frozen=True, kw_only=True)
class HostTurn:
    """What one platform did while it had the load."""

    cpu: Mapping[str, float]
    """Seconds by part."""
    calls: int

    @property
    def us_per_call(self) -> float:
        """Of all parts."""
        return 1e6 * sum(self.cpu.values()) / self.calls


@dataclass(frozen=True, kw_only=True)
class MeasuredHosts:
    """A platform over hosts, and how its gateways are called."""

    fleet: HostFleet
    clients: Sequence[GatewayClient]

    def exposition(self) -> str:
        """What Prometheus reads of all gateways."""
        names = [host.address for host in self.fleet.network.hosts.values() if "gateway" in host.running]
        urls = [f"http://{address}:{METRICS_PORT}/metrics" for address in names]
        return "".join(httpx.get(url, trust_env=False, timeout=30.0).text for url in urls)

    def processes(self) -> Processes:
        """What is below an agent are guests; what is below a gateway works for it."""
        used: dict[tuple[str, int], float] = {}
        for host in self.fleet.network.hosts.values():
            for part, process in host.running.items():
                if part in OTHERS:
                    continue
                used[part, process.pid] = report.cpu_seconds(process.pid)
                below = "guests" if part == "agent" else part
                used |= {(below, pid): _cpu_if_there(pid) for pid in descendants(process.pid)}
        return used


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("hosts", __doc__ or ""))
    if why := why_no_namespaces():
        sys.exit(f"benchmarks.hosts needs root, to make network namespaces; this machine makes none: {why}")
    rounds, seconds = (1, 2.0) if options.quick else (8, 4.0)
    report.finish("hosts", _tls(rounds, seconds))


def _tls(rounds: int, seconds: float) -> dict[str, float]:
    """What TLS costs a call."""
    with ExitStack() as stack:
        kinds = {kind: _one_of_each(stack, kind) for kind in ("plain", "bus", "tls")}
        turns: dict[str, list[HostTurn]] = {kind: [] for kind in kinds}
        for kind in (*list(kinds) * rounds, "plain"):
            turns[kind].append(_turn(kinds[kind], seconds))
    costs = {kind: us_per_call(found) for kind, found in turns.items()}
    rows = [(part, *(costs[kind].get(part, 0.0) for kind in kinds)) for part in costs["plain"]]
    rows.append(("all", *(sum(costs[kind].values()) for kind in kinds)))
    report.table("CPU of a call in µs", ("process", "plain", "TLS but for the API", "TLS"), rows)
    figures = {
        "tls_cpu_ratio": report.median(ratios(turns["plain"], turns["tls"])),
        "bus_tls_cpu_ratio": report.median(ratios(turns["plain"], turns["bus"])),
        "same_cpu_ratio": report.median(ratios(turns["plain"][::2], turns["plain"][1::2])) if rounds > 1 else 1.0,
    }
    for kind, cost in costs.items():
        figures |= {f"{kind}_cpu_us_per_call": sum(cost.values())}
        figures |= {f"{kind}_cpu_us_{part}": used for part, used in cost.items()}
    return figures


def _one_of_each(stack: ExitStack, kind: str) -> MeasuredHosts:
    """A platform with one gateway and one agent, whose function has answered a call."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    authority = None
    if kind != "plain":
        authority = folder / "authority"
        an_authority(authority)
    hosts = folder / "hosts"
    hosts.mkdir()
    fleet = stack.enter_context(host_fleet(hosts, "node-1", authority=authority, api_tls=kind == "tls"))
    client = fleet.start_one_of_each("node-1", *_measured(fleet, "gateway"))
    client.deploy(APP)
    client.output(REF, text="hello")
    return MeasuredHosts(fleet=fleet, clients=[client])


def _measured(fleet: HostFleet, gateway: str) -> tuple[str, ...]:
    """Flags with which a gateway shows its metrics to who is at the switch."""
    return ("--metrics-host", fleet.network.add(gateway).address, "--metrics-port", str(METRICS_PORT))


def _turn(running: MeasuredHosts, seconds: float) -> HostTurn:
    (client,) = running.clients
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {client.key}"}
    url, whole = f"{client.url}/v1/functions/{REF}/calls", SETTLED_S + seconds + SPARE_S
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(wrk.post, url, BODY, headers, connections=CALLERS, seconds=whole)
        time.sleep(SETTLED_S)
        calls, before = answers_by_status(running.exposition()), running.processes()
        time.sleep(seconds)
        calls, after = answers_by_status(running.exposition()) - calls, running.processes()
        if load.done():
            sys.exit("the load ended before its turn: the machine is too busy to measure on")
        errors = load.result().errors
    if errors or set(calls) != {"200"}:
        sys.exit(f"calls were answered so: {dict(calls)}, and {errors} not at all or with errors")
    return HostTurn(cpu=used_between(before, after), calls=calls["200"])


def used_between(before: Processes, after: Processes) -> dict[str, float]:
    """Seconds by part; what has ended meanwhile is not known."""
    used: defaultdict[str, float] = defaultdict(float)
    for (part, pid), seconds in after.items():
        used[part] += seconds - before.get((part, pid), 0.0)
    return dict(used)


def us_per_call(turns: Iterable[HostTurn]) -> dict[str, float]:
    """Microseconds by part, over all turns together; the dearest first."""
    used: defaultdict[str, float] = defaultdict(float)
    calls = 0
    for turn in turns:
        calls += turn.calls
        for part, seconds in turn.cpu.items():
            used[part] += seconds
    return {part: 1e6 * used[part] / calls for part in sorted(used, key=lambda part: -used[part])}


def ratios(plain: Sequence[HostTurn], others: Sequence[HostTurn]) -> list[float]:
    """Each of the others over the mean of the plain turns before and after it."""
    return [
        2.0 * turn.us_per_call / (plain[number].us_per_call + plain[number + 1].us_per_call)
        for number, turn in enumerate(others)
        if number + 1 < len(plain)
    ]


def _cpu_if_there(pid: int) -> float:
    try:
        return report.cpu_seconds(pid)
    except OSError:
        return 0.0  # it has just ended


if __name__ == "__main__":
    main()
