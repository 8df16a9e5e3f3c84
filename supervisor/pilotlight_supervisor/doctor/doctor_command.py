"""`pilotlight doctor`: checks whether this machine can be a host of a platform, and says what to do where it cannot.

It works without a platform: what it is given no address of, it leaves out. Settings that processes read from the
environment are read from there too. It ends with 1 if the host cannot be what it was checked for.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pilotlight_core.authorities import trust_authorities
from pilotlight_core.host.config import PREFIX, SANDBOXES
from pilotlight_core.model.errors import BadInput
from pilotlight_supervisor.doctor import clock_facts, network_probes
from pilotlight_supervisor.doctor.bounded_call import call_bounded
from pilotlight_supervisor.doctor.bus_facts import bus_program_findings, read_bus_program
from pilotlight_supervisor.doctor.clock_facts import ClockOffset, clock_findings
from pilotlight_supervisor.doctor.finding import Finding, Health, HostRole, judged, report, worst
from pilotlight_supervisor.doctor.kernel_facts import kernel_findings, read_kernel, server_kernel_findings
from pilotlight_supervisor.doctor.machine_facts import machine_findings, read_machine
from pilotlight_supervisor.doctor.network_facts import (
    blob_folder_finding,
    reach_findings,
    read_way_out,
    way_out_findings,
)
from pilotlight_supervisor.doctor.network_probes import Attempt, Reach
from pilotlight_supervisor.doctor.python_facts import python_findings, read_python
from pilotlight_supervisor.doctor.sandbox_facts import read_sandbox, sandbox_findings
from pilotlight_supervisor.doctor.storage_facts import (
    read_secret_files,
    read_storage,
    secret_file_findings,
    storage_findings,
)

PORTS = {HostRole.NODE: (), HostRole.GATEWAY: (8470,), HostRole.BUS: (4222,)}
API, BODIES, BLOBS, LEDGER = "API", "large bodies", "blob store", "ledger"
MOST_PORT = 65_535
STORAGE_S = 10.0
"""For a disk to be looked at and written to."""
GOOD = {API: (200,), BODIES: (404,)}
"""Statuses of what is asked for: that a gateway lives, and a body that nobody has."""


class _Known(msgspec.Struct):
    """Of a node's credentials, where its bus is."""

    bus_url: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorAsk:
    """What is to be checked."""

    role: HostRole
    state_dir: Path
    url: str = ""
    bus_urls: tuple[str, ...] = ()
    body_url: str = ""
    blob_url: str = ""
    ledger_url: str = ""
    ca_file: str = ""
    ntp: str = ""
    bases: tuple[str, ...] = ()
    sandbox: str = "bubblewrap"
    secret_files: tuple[Path, ...] = ()
    ports: tuple[int, ...] = ()

    @property
    def extras(self) -> tuple[str, ...]:
        """Of the package, those that the role needs."""
        needs_aws = self.role is HostRole.GATEWAY and self.blob_url.startswith("s3:")
        needs_postgres = self.ledger_url.startswith("postgresql:")
        return ("server", *["aws"] * needs_aws, *["postgres"] * needs_postgres)


def examine(ask: DoctorAsk) -> list[Finding]:
    """All findings, in the order in which they are read. Attempts go on beside one another, and beside the rest."""
    attempts = list(begin_attempts(ask))
    kernel = read_kernel()
    found = list(kernel_findings(kernel) if ask.role is HostRole.NODE else server_kernel_findings(kernel))
    found += machine_findings(read_machine(ask.ports), ask.role)
    found += _storage(ask)
    if ask.role is HostRole.BUS:
        found += bus_program_findings(read_bus_program())
    else:
        found += python_findings(read_python(ask.extras, ask.bases, ask.sandbox))
    if ask.role is HostRole.NODE:
        found += sandbox_findings(read_sandbox(ask.sandbox), ask.sandbox)
        found += way_out_findings(read_way_out())
    found += _certificates(ask.ca_file)
    reached = [attempt.wait() for attempt in attempts]
    at = time.time()
    for reach in reached:
        found += reach_findings(reach, at, good=GOOD.get(reach.what, ()))
    if ask.blob_url.startswith("file:"):
        found.append(_blob_folder(Path(urlsplit(ask.blob_url).path)))
    found += clock_findings(kept=clock_facts.is_kept(), offsets=tuple(_offsets(reached)))
    return [*found, *_ntp(ask.ntp)]


def _storage(ask: DoctorAsk) -> list[Finding]:
    try:
        storage = call_bounded(lambda: read_storage(ask.state_dir), STORAGE_S)
        files = call_bounded(lambda: read_secret_files(ask.secret_files, ask.state_dir), STORAGE_S)
    except OSError as error:
        return [
            judged(
                "state folder",
                f"{ask.state_dir}: {error}",
                "a local disk that answers",
                ok=False,
                todo="dmesg | tail; mount    # which file system it is on, and whether that hangs",
            )
        ]
    return [*storage_findings(storage, ask.role), *secret_file_findings(files)]


def _blob_folder(folder: Path) -> Finding:
    try:
        return call_bounded(lambda: blob_folder_finding(folder), STORAGE_S)
    except OSError as error:
        return judged("blob store", f"{folder}: {error}", "a folder that answers", ok=False, todo="dmesg | tail; mount")


def begin_attempts(ask: DoctorAsk) -> Iterator[Attempt]:
    """One for each address that was given."""
    for url in ask.bus_urls:
        yield network_probes.begin_bus(url, ask.ca_file)
    if ask.url:
        yield network_probes.begin_http(API, ask.url, "/healthz", ask.ca_file, only=True)
    if ask.body_url:
        yield network_probes.begin_http(BODIES, ask.body_url, "/bodies/doctor", ask.ca_file, only=False)
    if blobs := blob_endpoint(ask.blob_url, os.environ.get("AWS_ENDPOINT_URL", ""), os.environ.get("AWS_REGION", "")):
        yield network_probes.begin_http(BLOBS, blobs, "/", "", only=False)
    if ask.ledger_url.startswith("postgresql:"):
        yield network_probes.begin_connection(LEDGER, ask.ledger_url)


def blob_endpoint(blob_url: str, endpoint: str, region: str) -> str:
    """Where links to blobs lead; "": to a folder, or nowhere."""
    if blob_url.startswith(("http://", "https://")):
        return blob_url
    if not blob_url.startswith("s3:"):
        return ""
    return endpoint or f"https://s3.{region or 'us-east-1'}.amazonaws.com"


def _certificates(ca_file: str) -> Iterator[Finding]:
    if not ca_file:
        return
    try:
        known = len(trust_authorities(ca_file, "--ca-file").get_ca_certs())
        problem = "" if known else f"{ca_file} has no authority"
    except BadInput as error:
        known, problem = 0, error.detail
    yield judged(
        "authorities", problem or f"{known} in {ca_file}", "a file of authorities (PEM)", ok=not problem,
        todo="scp HOST:pilotlight-ca/ca.pem /etc/pilotlight/",
    )  # fmt: skip


def _offsets(reached: Sequence[Reach]) -> Iterator[ClockOffset]:
    for reach in reached:
        if reach.what == API and reach.date:
            offset = clock_facts.offset_by_date("the gateway", reach.date, reach.asked_at, reach.answered_at)
            yield from () if offset is None else (offset,)


def _ntp(host: str) -> Iterator[Finding]:
    if not host:
        return
    try:
        offset = call_bounded(lambda: clock_facts.ask_ntp(host, network_probes.PROBE_S), 2 * network_probes.PROBE_S)
    except OSError as error:
        yield judged(
            f"time server {host}", str(error), "an answer", ok=False, otherwise=Health.WARN,
            todo=f"chronyd -Q {shlex.quote(f'server {host} iburst')}    # does a firewall let UDP 123 pass?",
        )  # fmt: skip
        return
    # How it is kept was said before.
    yield from list(clock_findings(kept=True, offsets=(offset,)))[1:]


def read_ask(arguments: Sequence[str] | None, env: dict[str, str]) -> tuple[DoctorAsk, bool]:
    """What the words ask for, and whether as JSON."""
    parser = argparse.ArgumentParser(prog="pilotlight doctor", description=__doc__, allow_abbrev=False)

    def add(flag: str, text: str, variable: str = "", default: str = "") -> None:
        told = f"{text} [{PREFIX}{variable}]" if variable else text
        parser.add_argument(flag, default=env.get(PREFIX + variable, "") or default, help=told)

    parser.add_argument("--for", dest="role", type=HostRole, choices=list(HostRole), default=HostRole.NODE)
    add("--url", "of a gateway, or of what is in front of gateways", "URL")
    add("--nats-url", "where the bus is; of a cluster all, by commas", "NATS_URL")
    add("--credentials", "file that 'pilotlight node join' has written: it says where the bus is", "CREDENTIALS")
    add("--body-url", "of a gateway's port for large bodies, its --internal-url")
    add("--blob-url", "file:///…, s3://bucket, or the address of a store", "BLOB_URL")
    add("--ledger-url", "postgresql://…", "LEDGER_URL")
    add("--ca-file", "PEM: the authorities of the platform's certificates", "CA_FILE")
    add("--ntp", "a time server to compare the clock with")
    add("--state-dir", "folder of everything this machine keeps", "STATE_DIR", ".pilotlight")
    parser.add_argument("--base", action="append", help="NAME=PATH, as the agent's; may be repeated [PILOTLIGHT_BASE]")
    parser.add_argument("--sandbox", choices=SANDBOXES, default=env.get(f"{PREFIX}SANDBOX") or "bubblewrap")
    parser.add_argument("--port", type=_port, action="append", help="that must be free; may be repeated")
    parser.add_argument("--secret-file", type=Path, action="append", default=[], help="that must be closed to others")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    given = parser.parse_args(arguments)
    credentials = [Path(given.credentials)] if given.credentials else []
    buses = given.nats_url or (_bus_of(credentials[0]) if credentials else "")
    bases = given.base or [base for base in env.get(f"{PREFIX}BASE", "").split(",") if base]
    ask = DoctorAsk(
        role=given.role, state_dir=Path(given.state_dir), url=given.url, body_url=given.body_url,
        bus_urls=tuple(url.strip() for url in buses.split(",") if url.strip()), blob_url=given.blob_url,
        ledger_url=given.ledger_url, ca_file=given.ca_file, ntp=given.ntp, bases=tuple(bases), sandbox=given.sandbox,
        secret_files=(*credentials, *given.secret_file),
        ports=tuple(PORTS[given.role] if given.port is None else given.port),
    )  # fmt: skip
    return ask, given.json


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= MOST_PORT:
        raise ValueError(text)
    return port


def _bus_of(credentials: Path) -> str:
    try:
        return msgspec.json.decode(credentials.expanduser().read_bytes(), type=_Known).bus_url
    except (OSError, msgspec.DecodeError):
        return ""  # the line of the file itself says what is wrong with it


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, and print; 1 if the host cannot be what it was checked for."""
    ask, as_json = read_ask(arguments, dict(os.environ))
    findings = examine(ask)
    if as_json:
        told = {"for": ask.role, "health": worst(findings), "findings": findings}
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    else:
        sys.stdout.write(report(findings, ask.role))
    return 1 if worst(findings) is Health.FAIL else 0


if __name__ == "__main__":
    sys.exit(main())
