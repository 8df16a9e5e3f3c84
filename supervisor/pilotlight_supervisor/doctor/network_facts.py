"""What a host reaches: names, the bus, gateways, the blob store, the ledger, and the world outside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from shlex import quote

from pilotlight_supervisor.doctor.bus_facts import TESTED_BUS, dotted, version_of
from pilotlight_supervisor.doctor.finding import Finding, Health, judged
from pilotlight_supervisor.doctor.network_probes import BusGreeting, Reach, ReachStep

SOON_S = 14 * 86_400.0
"""As gateways warn of the end of their own."""
PAYLOAD = 4_000_000
"""What `infra/nats.conf` allows; a batch of usage may be that large."""
TODO = {
    ReachStep.NAME: "getent hosts {host}    # its name server; or put it into /etc/hosts",
    ReachStep.CONNECTION: "nc -vz {host} {port}    # does it run, and does a firewall let it pass?",
    ReachStep.TLS: "openssl s_client -connect {host}:{port} -servername {host} </dev/null    # what it shows",
    ReachStep.ANSWER: "curl -sv {url}    # what answers there",
}


@dataclass(frozen=True, kw_only=True)
class WayOut:
    """Whether functions that name hosts could be let out of here."""

    name_servers: tuple[str, ...]
    has_route: bool


def read_way_out(root: Path = Path("/")) -> WayOut:
    """Of this machine."""
    servers = re.findall(r"^\s*nameserver\s+(\S+)", _text(root / "etc/resolv.conf"), re.MULTILINE)
    four = any(line.split()[1:2] == ["00000000"] for line in _text(root / "proc/net/route").splitlines()[1:])
    six = any(
        line.split()[:2] == ["0" * 32, "00"] and line.split()[-1] != "lo"
        for line in _text(root / "proc/net/ipv6_route").splitlines()
    )
    return WayOut(name_servers=tuple(servers), has_route=four or six)


def way_out_findings(facts: WayOut) -> Iterator[Finding]:
    """A node without one can serve functions that connect to nothing."""
    missing = [] if facts.name_servers else ["no name server in /etc/resolv.conf"]
    missing += [] if facts.has_route else ["no default route"]
    yield judged(
        "way out of functions", "; ".join(missing) or f"names by {', '.join(facts.name_servers)}, and a default route",
        "both, for functions with network=", ok=not missing, otherwise=Health.WARN,
        todo="ip route; cat /etc/resolv.conf",
    )  # fmt: skip


def reach_findings(reach: Reach, at: float, *, good: Iterable[int] = ()) -> Iterator[Finding]:
    """How far an attempt came, and whether the certificate lasts; `good`: the statuses that are right, or any."""
    if _is_name(reach.host):
        yield judged(
            f"name {reach.host}", ", ".join(reach.addresses) or reach.problem, "an address",
            ok=bool(reach.addresses), todo=_todo(reach, ReachStep.NAME),
        )  # fmt: skip
        if not reach.addresses:
            return
    wanted = tuple(good)
    if reach.problem:
        expected = {
            ReachStep.NAME: "an address", ReachStep.CONNECTION: "a connection", ReachStep.ANSWER: "an answer",
            ReachStep.TLS: "TLS with a certificate of that name, of an authority that is believed here",
        }[reach.step]  # fmt: skip
        found = f"{reach.url}: {reach.problem}"
        yield judged(reach.what, found, expected, ok=False, todo=_todo(reach, reach.step))
    else:
        answered = f" answers {reach.status}" if reach.status else " is reached"
        expected = f"{' or '.join(map(str, wanted))}" if wanted else "an answer"
        yield judged(
            reach.what, f"{reach.url}{answered}", expected, ok=not wanted or reach.status in wanted,
            todo=_todo(reach, ReachStep.ANSWER),
        )  # fmt: skip
    if reach.expires_at is not None:
        yield _certificate(reach, reach.expires_at, at)
    if reach.greeting is not None:
        yield from _bus(reach.greeting, reach)


def _certificate(reach: Reach, expires_at: float, at: float) -> Finding:
    until = datetime.fromtimestamp(expires_at, UTC)
    return judged(
        f"certificate of {reach.what}", f"of {', '.join(reach.names) or 'no name'}; until {until:%Y-%m-%d}, in "
        f"{(expires_at - at) / 86_400:.0f} days", "valid for 14 days or more", ok=expires_at - at >= SOON_S,
        otherwise=Health.WARN, todo="pilotlight ca issue NAME --replace    # or have your authority renew it",
    )  # fmt: skip


def _bus(greeting: BusGreeting, reach: Reach) -> Iterator[Finding]:
    wanted = dotted(TESTED_BUS)
    problems = [] if greeting.jetstream else ["JetStream is off"]
    problems += [] if greeting.auth_required else ["nobody needs a password or a key"]
    yield judged(
        "bus server", "; ".join(problems) or "JetStream, and users",
        "JetStream, and users with rights of their own", ok=not problems,
        todo="Start it with infra/nats.conf; python -m pilotlight_core.bus.bus_users prints the users.",
    )  # fmt: skip
    small = greeting.max_payload < PAYLOAD
    old = version_of(greeting.version) < TESTED_BUS
    yield judged(
        "bus version", f"{greeting.version[:40] or 'unknown'}; max_payload {greeting.max_payload}",
        f"{wanted} or newer; max_payload {PAYLOAD} or more", ok=not small and not old, otherwise=Health.WARN,
        todo="max_payload: 4MB    # in its configuration" if small else f"Install nats-server {wanted}.",
    )  # fmt: skip
    if not reach.secure and not reach.problem and not _is_loopback(reach.host):
        yield judged(
            "bus in clear", f"{reach.url} has no TLS", "tls://, or a network that nobody else reads", ok=False,
            otherwise=Health.WARN, todo="include ./nats-tls.conf    # in its configuration, and tls:// in its address",
        )  # fmt: skip


def blob_folder_finding(folder: Path) -> Finding:
    """Whether a store of blobs that is a folder is mounted here."""
    return judged(
        "blob store", f"{folder} {'is there' if folder.is_dir() else 'is not there'}",
        "the folder that gateways write to, mounted here", ok=folder.is_dir(),
        todo="Mount it, or have a bucket: --blob-url s3://BUCKET.",
    )  # fmt: skip


def _todo(reach: Reach, step: ReachStep) -> str:
    address = re.search(r":(\d+)(?:/|$)", reach.url)
    defaults = {"https": "443", "http": "80", "postgresql": "5432"}
    port = address[1] if address else defaults.get(reach.url.partition(":")[0], "4222")
    return TODO[step].format(host=quote(reach.host), port=port, url=quote(reach.url))


def _is_name(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return bool(host)
    return False


def _is_loopback(host: str) -> bool:
    return host == "localhost" if _is_name(host) else ip_address(host).is_loopback


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
