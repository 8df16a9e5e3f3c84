"""`pilotlight ca`: makes a certificate authority, and issues certificates by it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from pilotlight_core.host.certificates.authority import (
    AUTHORITY_CERTIFICATE,
    AUTHORITY_DAYS,
    CERTIFICATE_DAYS,
    CertificateAsk,
    issue_certificate,
    make_authority,
    renewal_of,
)
from pilotlight_core.model.errors import BadInput

MOST_DAYS = 36_500


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        told, text = _make(options) if options.action == "init" else _issue(options)
    except (BadInput, OSError) as error:
        sys.stderr.write(f"error: {error.detail if isinstance(error, BadInput) else error}\n")
        return 1
    sys.stdout.write(msgspec.json.encode(told).decode() + "\n" if options.json else text)
    return 0


def _make(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    files = make_authority(options.folder, at=datetime.now(UTC), name=options.name, days=options.days)
    told = {"certificate": str(files.certificate), "key": str(files.key), "expires": files.expires.isoformat()}
    return told, (
        f"{files.certificate}: the authority, until {files.expires.date()}. Give it to all processes and clients:\n"
        f"  export PILOTLIGHT_CA_FILE={files.certificate.resolve()}\n"
        f"{files.key}: its key, with which anybody could be any of your servers. Keep the folder off their hosts.\n"
        f"Next: pilotlight ca issue gw-1 --ca {options.folder} --host gw-1.example.com --ip 10.0.0.5\n"
    )


def _issue(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    ask, kept = _ask(options)
    files = issue_certificate(options.ca, ask, at=datetime.now(UTC), replace=options.replace)
    told = {
        "name": ask.name,
        "hosts": ask.hosts,
        "ips": ask.ips,
        "server": ask.server,
        "client": ask.client,
        "certificate": str(files.certificate),
        "key": str(files.key),
        "authority": str(options.ca / AUTHORITY_CERTIFICATE),
        "expires": files.expires.isoformat(),
    }
    whom = ", ".join((*ask.hosts, *ask.ips)) or ask.name
    head = f"{files.certificate}: a certificate for {whom}, until {files.expires.date()}\n{files.key}: its key\n"
    if kept:
        head += f"It says what the one before it said: {kept}.\n"
    return told, head + (_for_server(told) if ask.server else "") + (_for_client(told) if ask.client else "")


def _ask(options: argparse.Namespace) -> tuple[CertificateAsk, str]:
    """What is asked for, and, in words, what of it is the replaced certificate's: its names and its uses, if none are
    given."""
    hosts, ips, server, client = tuple(options.host), tuple(options.ip), options.server, options.client
    before = renewal_of(options.ca, options.holder, days=options.days) if options.replace else None
    kept: list[str] = []
    if before is not None and not (server or client):
        server, client = before.server, before.client
        kept += ["for servers"] * server + ["for clients"] * client
    if before is not None and not (hosts or ips):
        hosts, ips = before.hosts, before.ips
        kept += [*hosts, *ips]
    ask = CertificateAsk(
        name=options.holder,
        hosts=hosts,
        ips=ips,
        server=server or not client,
        client=client,
        days=options.days,
    )
    return ask, ", ".join(kept)


def _for_server(told: dict[str, Any]) -> str:
    certificate, key = told["certificate"], told["key"]
    return (
        f"A gateway:    --tls-cert {certificate} --tls-key {key}\n"
        f"Large bodies: --internal-tls-cert {certificate} --internal-tls-key {key}\n"
        f'nats-server:  tls {{ cert_file: "{certificate}", key_file: "{key}" }}\n'
    )


def _for_client(told: dict[str, Any]) -> str:
    authority = told["authority"]
    return (
        f"A client:     curl --cacert {authority} --cert {told['certificate']} --key {told['key']} https://…\n"
        f"A gateway that asks for it: --tls-client-ca {authority}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pilotlight ca", description="A certificate authority in a folder.")
    actions = parser.add_subparsers(dest="action", required=True)
    init = actions.add_parser("init", help="make an authority")
    init.add_argument("folder", type=Path, nargs="?", default=Path("ca"), help="of its files; default: ca")
    init.add_argument("--name", default="Pilotlight CA", help="its subject's common name")
    init.add_argument("--days", type=_days, default=AUTHORITY_DAYS, help="how long it is valid")
    issue = actions.add_parser("issue", help="issue a certificate")
    issue.add_argument("holder", metavar="name", help="of its holder, and of its files")
    issue.add_argument("--ca", type=Path, default=Path("ca"), help="folder of the authority; default: ca")
    issue.add_argument("--host", action="append", default=[], help="a name by which it is reached; may be repeated")
    issue.add_argument("--ip", action="append", default=[], help="an address by which it is reached; may be repeated")
    issue.add_argument("--server", action="store_true", help="it proves a server (the default)")
    issue.add_argument("--client", action="store_true", help="it proves a client")
    issue.add_argument("--days", type=_days, default=CERTIFICATE_DAYS, help="how long it is valid")
    issue.add_argument(
        "--replace",
        action="store_true",
        help="renew: a new key and certificate in their place, of the same names and uses unless others are given",
    )
    for each in (init, issue):
        each.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= MOST_DAYS:
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_DAYS} days")
    return days


if __name__ == "__main__":
    sys.exit(main())
