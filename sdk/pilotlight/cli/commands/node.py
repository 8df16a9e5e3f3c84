"""`pilotlight node`: nodes join, are listed, cordoned, drained and revoked; what this machine guarantees."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.confirm import confirmed
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.platform_commands import run_command
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.api.join_text import MOST_TRUSTED, JoinText, check_join_token
from pilotlight_core.model.api.node_api import CLOCK_OFF_S, JoinTokenRequest
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.versions.public_keys import public_keys_of

TEXT_WIDTH = 120
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the node's name, as listed")]
SHOWN = ("node", "status", "state", "joined", "region", "zone", "pool", "purchase", "containers", "bases", "notice")

app = command_app(no_args_is_help=True)


@app.callback()
def group() -> None:
    """Nodes of the platform, and what this machine guarantees as one."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def check(
    context: typer.Context, as_json: Annotated[bool, typer.Option("--json", help="print the checks as JSON")] = False
) -> None:
    """Check what this machine can guarantee to containers.

    \b
    sudo pilotlight node check
    """
    flags = ["--json"] * as_json
    raise typer.Exit(run_command("node-check", [*flags, *context.args], as_json=as_json))


@app.command()
def token(
    node: Annotated[str, typer.Option(help="the only name under which a host may join by it")] = "",
    zone: Annotated[str | None, typer.Option(help="where the node is; by default as the gateway")] = None,
    pool: Annotated[str, typer.Option(help="the pool that it is part of")] = "",
    spot: Annotated[bool, typer.Option("--spot", help="it may be taken away at short notice, and costs less")] = False,
    expires: Annotated[str, typer.Option(help="until when it may be used: 15m, 2h")] = "15m",
    trusted_keys: Annotated[
        Path | None, typer.Option(help="PEM: whom its agent trusts, the operator's public key or a gateway's")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a token by which one host may join as a node, once. It is shown once, on stdout.

    Zone, pool and purchase are those of the node from then on, whatever its agent says. Keys of --trusted-keys are put
    behind the token on this machine, and no gateway sees them.

    \b
    pilotlight node token
    pilotlight node token --node gpu-7 --zone eu-1 --pool h100 --spot --expires 1h
    pilotlight node token --trusted-keys operator_ed25519.pub
    """
    keys = () if trusted_keys is None else _keys_in(trusted_keys)
    request = JoinTokenRequest(
        node=node, zone=zone, pool=pool, purchase=Purchase.SPOT if spot else Purchase.ON_DEMAND,
        expires_in_s=read_span(expires, "--expires"),
    )  # fmt: skip
    made = ask(client().nodes.create_join_token(request))
    made["token"] = str(JoinText(check_join_token(str(made.get("token"))), keys))
    if as_json:
        print_json(made)
        return
    print_text(made["token"])
    note(f"One host may join by it, within {expires}: pilotlight node join URL --token …. It is not shown again.")


def _keys_in(path: Path) -> tuple[bytes, ...]:
    try:
        found = public_keys_of(path.read_bytes())
    except (OSError, ValueError) as error:
        raise OptionError(f"--trusted-keys: there are no public keys in {path}: {error}") from None
    if len(found) > MOST_TRUSTED:
        raise OptionError(f"--trusted-keys: there are {len(found)} keys in {path}, and {MOST_TRUSTED} at most may be")
    return found


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def join(context: typer.Context, as_json: Json = False) -> None:
    """Make this host a node: its own identity on the bus, for a token. Options: --token, --node, --file.

    The token may also come on stdin (--token -) or in PILOTLIGHT_JOIN_TOKEN.

    \b
    sudo pilotlight node join https://gw-1.example.com --token - --file /etc/pilotlight/node.json
    """
    raise typer.Exit(run_command("node-join", [*["--json"] * as_json, *context.args], as_json=as_json))


@app.command(name="list")
def list_nodes(
    wide: Annotated[bool, typer.Option("--wide", "-w", help="also what each guarantees")] = False, as_json: Json = False
) -> None:
    """List the nodes that report, and those that have joined.

    \b
    pilotlight node list
    pilotlight node list --wide
    """
    nodes = ask(client().nodes.list_nodes())
    if as_json:
        print_json(nodes)
        return
    columns: tuple[str, ...] = ("node", "status", "state", "zone", "pool", "purchase", "containers", "clock")
    rows = [_node_row(node) for node in nodes]
    if wide:
        columns = (*columns, "sandbox", "host", "devices", "identity")
        rows = [(*row, *_guarantees(node)) for row, node in zip(rows, nodes, strict=True)]
    print_table(columns, rows, empty="No node reports.", right=("containers", "clock"), less=("pool", "purchase"))


@app.command()
def show(node: Name, as_json: Json = False) -> None:
    """Show a node: its labels, how it is, and what it guarantees.

    \b
    pilotlight node show gpu-7
    """
    found = ask(client().nodes.get_node(node))
    if as_json:
        print_json(found)
        return
    rows = [(key, _text(found[key])) for key in SHOWN if found.get(key) not in (None, "", [], {})]
    rows += [(key, _text(value)) for key, value in found["guarantees"].items()]
    print_table(("what", "is"), rows, empty="Nothing is known of it.")


@app.command()
def cordon(node: Name, as_json: Json = False) -> None:
    """Start nothing new on a node; what runs there goes on.

    \b
    pilotlight node cordon gpu-7
    """
    _report(ask(client().nodes.cordon_node(node)), "takes nothing new", as_json=as_json)


@app.command()
def uncordon(node: Name, as_json: Json = False) -> None:
    """Let a node that was cordoned or drained take containers again.

    \b
    pilotlight node uncordon gpu-7
    """
    _report(ask(client().nodes.uncordon_node(node)), "takes containers", as_json=as_json)


@app.command()
def drain(node: Name, as_json: Json = False) -> None:
    """End a node's containers as others start elsewhere.

    Each has a grace for its calls; nothing new starts there. 'pilotlight node list' shows how many are left.

    \b
    pilotlight node drain gpu-7
    """
    _report(ask(client().nodes.drain_node(node)), "drains", as_json=as_json)


@app.command()
def revoke(
    node: Name, yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False, as_json: Json = False
) -> None:
    """Take a node off the platform for good.

    Within five seconds it is off the bus, and it does not come back. What runs there counts as lost. The host may join
    anew, by another token.

    \b
    pilotlight node revoke gpu-7 --yes
    """
    if not yes and not confirmed(f"Take {node} off the platform, with all that runs there?"):
        raise OptionError(f"{node} is not revoked: say --yes.")
    _report(ask(client().nodes.revoke_node(node)), "is out", as_json=as_json)


@app.command()
def quarantine(
    node: Annotated[str | None, typer.Option(help="only this one's")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", help="how many", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Show impossible usage that nodes sent: it is on no bill.

    For operators. A node that sends such usage is broken, or taken over. The last of each are kept, all are counted.

    \b
    pilotlight node quarantine
    pilotlight node quarantine --node gpu-7 --limit 100 --json
    """
    page = ask(client().platform.get_quarantine(node, limit))
    if as_json:
        print_json(page)
        return
    counts = [(count["node"] or "-", count["reason"], count["events"]) for count in page["counts"]]
    print_table(("node", "reason", "events"), counts, empty="Nothing is in quarantine.", right=("events",))
    if counts:
        note("")
        print_table(("at", "node", "reason", "sent"), [_row(item) for item in page["items"]], empty="Nothing is kept.")


def _report(found: dict[str, Any], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        note(f"{found['node']} {what}.")


def _node_row(node: dict[str, Any]) -> tuple[str, ...]:
    return (
        node["node"], node["status"], node["state"], node["zone"] or "-", node["pool"] or "-", node["purchase"] or "-",
        str(node["containers"]), _clock(node["clock_s"]),
    )  # fmt: skip


def _clock(ahead_s: float | None) -> str:
    """How far a clock is off; "ok" within what is not told of."""
    if ahead_s is None:
        return "-"
    return "ok" if abs(ahead_s) <= CLOCK_OFF_S else f"{ahead_s:+.1f} s"


def _guarantees(node: dict[str, Any]) -> tuple[str, ...]:
    held = node["guarantees"]
    host = held.get("host")
    sandbox = f"{held.get('sandbox', '-')}{'' if held.get('isolated', True) else ' (one tenant only)'}"
    kinds = [f"{each['type']}{':mig' if each['mig'] == 'on' else ''}" for each in held.get("devices", ())]
    devices = [f"{kinds.count(kind)}x{kind}" for kind in dict.fromkeys(kinds)]
    until = datetime.fromtimestamp(node["expires_at"], UTC).strftime("%Y-%m-%d") if node["expires_at"] else "static"
    size = f"{host['cores']:g} cores, {host['memory'] / 2**30:.1f} GiB" if host else "-"
    return sandbox, size, ", ".join(devices) or "-", until if node["joined"] else "static"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={_text(one)}" for key, one in value.items())
    return str(value)


def _row(item: dict[str, Any]) -> tuple[str, str, str, str]:
    at = datetime.fromtimestamp(item["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    return at, item["node"] or "-", item["reason"], item["text"][:TEXT_WIDTH]
