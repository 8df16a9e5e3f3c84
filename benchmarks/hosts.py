"""What a platform over hosts costs: each process in a network namespace of this machine, with an address of its own.

Calls go over links between hosts, unless `KIND_over_links` says otherwise.

Needs root, since it makes the namespaces; the kernel takes them away when it ends.

    tls_cpu_ratio        processor time of all processes of the platform for a call, with TLS on the bus, the API and
                         the listener for large bodies, over that of one that speaks plain: the median of turns with
                         TLS, each over the mean of the turns without before and after it
    bus_tls_cpu_ratio    the same with TLS on bus and listener alone, as behind a proxy that ends that of the API
    same_cpu_ratio       the same of every other turn without, over those around it: 1, but for the machine
    KIND_over_links      the part of the calls that went over links between hosts, the rest over the bus

    two_gateways_four_agents_calls_per_s, _errors
                         small calls through both gateways, half of the callers each, to one container on each agent,
                         and how many were not answered with their output
    bodies_mb_s          MB of inputs and outputs together, in calls of 10 MB both ways through one of the gateways to
                         the four agents

For the ratios three platforms of one gateway and one agent run side by side and take turns, so that the machine's drift
falls on all alike. All have the same 64 callers (wrk), whose own work, TLS included, is not counted; nor are the store
and the handshakes, which come before a turn. The other figures are of a platform with TLS on everything, with callers
on the same machine.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import httpx
import msgspec

from benchmarks import report, wrk
from benchmarks.http_load import Caller
from benchmarks.overhead import answers_by_status
from pilotlight_core.host.signing import Signer
from pilotlight_gateway.operator_key import KEY_SET, OPERATOR_KEY, vouch
from tests.builders.certificates import an_authority
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import why_no_namespaces
from tests.system.support.processes import descendants
from tests.waiting import wait_until

FUNCTIONS = Path(__file__).parent / "functions"
ONE, SPREAD = "bench.echo", "hosts.echo"
BODY = '{"input": {"text": "hello"}}'
CALLERS = 64
LARGE = 10_000_000 - 1_000
"""With what is around it, as large as a body may be."""
LARGE_CALLERS = 3
"""A tenant's share of a gateway's memory for bodies is 80 MB; a fourth would fill it to the last byte."""
GATEWAYS, NODES = ("gateway-1", "gateway-2"), ("node-1", "node-2", "node-3", "node-4")
SETTLED_S, SPARE_S = 1.0, 3.0
"""Before a turn, with its handshakes, and after it."""
METRICS_PORT = 9100
OTHERS = ("s3",)
"""Processes on hosts that are not the platform's."""
BELOW = {"agent": "guests", "gateway": "gateway"}
"""What processes below those of a part are."""

Processes: TypeAlias = Mapping[tuple[str, int], float]
"""Seconds that each process has used so far, by part and pid."""


@dataclass(frozen=True, kw_only=True)
class HostTurn:
    """What one platform did while it had the load."""

    cpu: Mapping[str, float]
    """Seconds by part."""
    calls: int
    """Those that were answered with their output."""
    errors: int = 0
    seconds: float = 1.0
    over_links: float = 0.0
    """The part of the calls that was sent to agents over links."""

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
        with httpx.Client(trust_env=False, verify=False, timeout=30.0) as plain:  # noqa: S501 - no https: nothing to load
            return "".join(plain.get(url).text for url in urls)

    def processes(self) -> Processes:
        """Of all parts."""
        used: dict[tuple[str, int], float] = {}
        for host in self.fleet.network.hosts.values():
            for part, process in host.running.items():
                if part in OTHERS:
                    continue
                used[part, process.pid] = report.cpu_seconds(process.pid)
                if below := BELOW.get(part):
                    used |= {(below, pid): _cpu_if_there(pid) for pid in descendants(process.pid)}
        return used


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("hosts", __doc__ or ""))
    if why := why_no_namespaces():
        sys.exit(f"benchmarks.hosts needs root, to make network namespaces; this machine makes none: {why}")
    rounds, seconds = (1, 2.0) if options.quick else (8, 4.0)
    report.finish("hosts", _tls(rounds, seconds) | _many(rounds, seconds))


def _tls(rounds: int, seconds: float) -> dict[str, float]:
    """What TLS costs a call."""
    with ExitStack() as stack:
        kinds = {kind: _one_of_each(stack, kind) for kind in ("plain", "bus", "tls")}
        turns: dict[str, list[HostTurn]] = {kind: [] for kind in kinds}
        for kind in (*list(kinds) * rounds, "plain"):
            turn = _turn(kinds[kind], ONE, seconds)
            if turn.errors:
                sys.exit(f"{turn.errors} calls were not answered with their output")
            turns[kind].append(turn)
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
        figures |= {f"{kind}_calls_per_s": report.median([turn.calls / turn.seconds for turn in turns[kind]])}
        figures |= {f"{kind}_cpu_us_{part}": used for part, used in cost.items()}
        figures |= {f"{kind}_over_links": report.median([turn.over_links for turn in turns[kind]])}
    return figures


def _many(rounds: int, seconds: float) -> dict[str, float]:
    """What two gateways and four agents do, all with TLS: small calls through both, large bodies through one."""
    with ExitStack() as stack:
        running = _two_and_four(stack)
        small = [_turn(running, SPREAD, seconds) for _ in range(rounds)]
        large = [asyncio.run(_large_turn(running, 2.0 * seconds)) for _ in range(rounds)]
    cost, per_mb = us_per_call(small), us_per_call(large)
    rows = [(part, used, per_mb.get(part, 0.0) / 1000.0) for part, used in cost.items()]
    rows.append(("all", sum(cost.values()), sum(per_mb.values()) / 1000.0))
    report.table("CPU over two gateways and four agents", ("process", "small call, µs", "10 MB both ways, ms"), rows)
    return {
        "two_gateways_four_agents_calls_per_s": report.median([turn.calls / turn.seconds for turn in small]),
        "two_gateways_four_agents_errors": sum(turn.errors for turn in small),
        "two_gateways_four_agents_cpu_us_per_call": sum(cost.values()),
        "bodies_mb_s": report.median([mb_per_s(turn) for turn in large]),
        "bodies_errors": sum(turn.errors for turn in large),
        "bodies_cpu_ms_per_call": sum(per_mb.values()) / 1000.0,
    }


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
    client.deploy(FUNCTIONS / "app.py")
    client.output(ONE, text="hello")
    return MeasuredHosts(fleet=fleet, clients=[client])


def _two_and_four(stack: ExitStack) -> MeasuredHosts:
    """A platform with TLS whose gateways the operator vouches for, and a container of one function on each node."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    authority, operator, hosts = folder / "authority", folder / "operator", folder / "hosts"
    an_authority(authority)
    hosts.mkdir()
    fleet = stack.enter_context(host_fleet(hosts, *NODES, authority=authority))
    fleet.start_database()
    shown = {name: _measured(fleet, name) for name in GATEWAYS}
    keys = [fleet.network.hosts[name].folder / "state" / "keys" for name in GATEWAYS]
    for each in keys:
        Signer.load_or_create(each)
    vouch(operator, keys, time.time())
    clients = [fleet.start_gateway(name, "--key-set", str(operator / KEY_SET), *shown[name]) for name in GATEWAYS]
    fleet.start_duties(fleet.network.hosts[GATEWAYS[0]])
    fleet.start_controller()
    trusted = ("--trusted-keys", str(operator / f"{OPERATOR_KEY}.pub"))
    for node in NODES:
        fleet.start_agent(node, *trusted, "--cpu-slots", "1", "--blanks", "0")
    clients[0].deploy(FUNCTIONS / "hosts.py")

    def spread() -> bool:
        ready = [each for each in clients[0].containers("hosts") if each["state"] == "ready"]
        return {each["node"] for each in ready} == set(NODES)

    wait_until(spread, "each node has a container", 90.0)
    for client in clients:
        client.output(SPREAD, text="hello")
    return MeasuredHosts(fleet=fleet, clients=clients)


def _measured(fleet: HostFleet, gateway: str) -> tuple[str, ...]:
    """Flags with which a gateway shows its metrics to who is at the switch."""
    return ("--metrics-host", fleet.network.add(gateway).address, "--metrics-port", str(METRICS_PORT))


def _turn(running: MeasuredHosts, ref: str, seconds: float) -> HostTurn:
    """Small calls through all gateways, with equal shares of the callers."""
    clients, whole = running.clients, SETTLED_S + seconds + SPARE_S

    def send(client: GatewayClient) -> wrk.Load:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {client.key}"}
        url = f"{client.url}/v1/functions/{ref}/calls"
        return wrk.post(url, BODY, headers, connections=CALLERS // len(clients), seconds=whole)

    with ThreadPoolExecutor(len(clients)) as pool:
        loads = [pool.submit(send, client) for client in clients]
        time.sleep(SETTLED_S)
        shown, before, began = running.exposition(), running.processes(), time.monotonic()
        time.sleep(seconds)
        ended, after = running.exposition(), running.processes()
        calls, ways = answers_by_status(ended) - answers_by_status(shown), runs_by_way(ended) - runs_by_way(shown)
        took = time.monotonic() - began
        is_over = any(load.done() for load in loads)
        errors = sum(load.result().errors for load in loads)
    if is_over:
        sys.exit("the load ended before its turn: the machine is too busy to measure on")
    over_links = ways["hosts"] / max(1, ways.total())
    return HostTurn(
        cpu=used_between(before, after), calls=calls["200"], errors=errors, seconds=took, over_links=over_links
    )


def runs_by_way(text: str) -> Counter[str]:
    """Calls that were sent to agents, in what Prometheus reads."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("pilotlight_runs_sent_total{"):
            name, value = line.rsplit(" ", 1)
            found[name.split('"')[1]] += int(float(value))
    return found


async def _large_turn(running: MeasuredHosts, seconds: float) -> HostTurn:
    """Calls of 10 MB both ways through the first gateway; those that have begun end."""
    client, trusted = running.clients[0], running.fleet.trusted
    assert isinstance(trusted, ssl.SSLContext)
    caller = Caller(client.url, SPREAD, client.key, trusted=trusted)
    data = msgspec.json.encode({"input": {"text": "x" * LARGE}})
    before, began = running.processes(), time.monotonic()
    counts = Counter[bool]()

    async def call() -> None:
        while time.monotonic() < began + seconds:
            answer = await caller.post(data)
            counts[answer.status == 200 and len(answer.body) > LARGE] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(LARGE_CALLERS):
            group.create_task(call())
    took = time.monotonic() - began
    caller.close()
    cpu = used_between(before, running.processes())
    return HostTurn(cpu=cpu, calls=counts[True], errors=counts[False], seconds=took)


def mb_per_s(turn: HostTurn) -> float:
    """Inputs and outputs together, of calls of 10 MB both ways."""
    return 2.0 * LARGE * turn.calls / turn.seconds / 1e6


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
