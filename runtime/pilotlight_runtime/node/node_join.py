"""`pilotlight node join`: makes a key on this host, and has a gateway know it as a node's, for a token.

Whom the agent trusts is never a gateway's to say: these keys stand behind the token, where the operator has put them.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import msgspec

from pilotlight_core.bus.nkeys import Nkey, NkeyKind
from pilotlight_core.model.api.join_text import parse_join_text
from pilotlight_core.model.api.node_api import JoinedNode, JoinRequest
from pilotlight_core.model.errors import BadInput, PilotlightError, error_from_code
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.placing import Purchase
from pilotlight_runtime.node.node_credentials import (
    FILE_NAME,
    NodeCredentials,
    trusted_file,
    write_credentials,
    write_trusted,
)

TOKEN = "PILOTLIGHT_JOIN_TOKEN"  # noqa: S105 - the variable's name
CA_FILE = "PILOTLIGHT_CA_FILE"
"""The variable that all processes of a platform read."""
TIMEOUT_S = 30.0


class _Problem(msgspec.Struct):
    """What of an error's answer is shown."""

    code: str = "internal"
    detail: str = ""


def join_platform(url: str, token: str, node: str, sender: httpx.Client, at: float) -> NodeCredentials:
    """Join as `node` at the unix second `at`; the credentials.

    Raises:
        PilotlightError: the platform refuses, or does not answer.
    """
    key = Nkey.generate(NkeyKind.USER)
    asked = JoinRequest(token=token, node=check_name(node, "node"), key=key.public)
    try:
        answer = sender.post(
            f"{url.rstrip('/')}/v1/nodes/join",
            content=msgspec.json.encode(asked),
            headers={"Content-Type": "application/json"},
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise PilotlightError(f"There is no answer from {url}: {error}.{_hint(error)}", code="no_capacity") from None
    try:
        if answer.status_code != httpx.codes.CREATED:
            problem = msgspec.json.decode(answer.content, type=_Problem)
            raise error_from_code(problem.code, problem.detail)
        joined = msgspec.json.decode(answer.content, type=JoinedNode)
    except msgspec.DecodeError:
        raise PilotlightError(f"{url} is no gateway: it answers {answer.status_code}.") from None
    return NodeCredentials(
        node=joined.node, region=joined.region, zone=joined.zone, spot=joined.purchase is Purchase.SPOT,
        bus_url=joined.bus_url, seed=key.seed, renewed_at=at, expires_at=joined.expires_at,
    )  # fmt: skip


def _hint(error: Exception) -> str:
    if "CERTIFICATE_VERIFY" not in str(error):  # httpx keeps no more of the reason than its text
        return ""
    return f" The file of the authority that signed its certificate goes into --ca-file or {CA_FILE}."


def authorities(path: str) -> ssl.SSLContext:
    """Those by which a gateway proves its name: of a file, else those that Python knows.

    Raises:
        BadInput: there are none in the file.
    """
    try:
        return ssl.create_default_context(cafile=path or None)
    except OSError as error:  # ssl.SSLError is one
        raise BadInput(f"ca_file: there are no certificates in {path}: {error}.", field="ca_file") from None


def read_token(given: str) -> str:
    """The token: as given, of the first line of stdin for `-`, or of the environment.

    Raises:
        BadInput: there is none.
    """
    token = sys.stdin.readline() if given == "-" else given or os.environ.get(TOKEN, "")
    if not token.strip():
        raise BadInput(f"token: say it with --token, with --token - on stdin, or in {TOKEN}.", field="token")
    return token.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Join; 0 when the credentials are written."""
    parser = argparse.ArgumentParser(prog="pilotlight node join", description=__doc__)
    parser.add_argument("url", help="of a gateway")
    parser.add_argument("--token", default="", help=f"as 'pilotlight node token' printed it; -: stdin [{TOKEN}]")
    parser.add_argument("--node", default="", help="the node's name [this host's]")
    parser.add_argument("--file", type=Path, default=Path(".pilotlight") / FILE_NAME, help="for the credentials")
    parser.add_argument(
        "--ca-file",
        default=os.environ.get(CA_FILE, ""),
        help=f"PEM: the authorities of the gateway's certificate [{CA_FILE}]",
    )
    parser.add_argument("--json", action="store_true", help="print what the node is as JSON")
    given = parser.parse_args(arguments)
    try:
        if given.file.exists():
            raise BadInput(f"file: {given.file} is there already: this host has joined, or remove it.", field="file")
        node = given.node or socket.gethostname().partition(".")[0]
        with httpx.Client(timeout=TIMEOUT_S, verify=authorities(given.ca_file)) as sender:
            said = parse_join_text(read_token(given.token))
            made = join_platform(given.url, said.token, node, sender, time.time())
        write_trusted(given.file, said.trusted)  # first: no agent starts with those of a former token
        write_credentials(given.file, made)
    except (PilotlightError, OSError) as error:
        detail = error.detail if isinstance(error, PilotlightError) else str(error)
        sys.stderr.write(f"error: {detail}\n")
        return 1
    if given.json:
        shown = {name: getattr(made, name) for name in ("node", "region", "zone", "spot", "bus_url", "expires_at")}
        trusted = str(trusted_file(given.file)) if said.trusted else ""
        shown |= {"file": str(given.file), "trusted_keys": trusted}
        sys.stdout.write(msgspec.json.encode(shown).decode() + "\n")
    else:
        flag = "" if said.trusted else " --trusted-keys FILE"
        sys.stdout.write(
            f"{made.node} has joined. Start its agent:\npython -m pilotlight_runtime --credentials {given.file}{flag}\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
