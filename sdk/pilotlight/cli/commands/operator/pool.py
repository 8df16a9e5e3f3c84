"""`pilotlight pool`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolTerms

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the pool's name")]
COLUMNS = ("pool", "provider", "types", "purchase", "nodes", "up", "USD per hour", "state")


@app.callback()
def group() -> None:
    """Pools of nodes: machines that are launched for what has no place."""


@app.command(name="list")
def list_pools(
    wide: Annotated[bool, typer.Option("--wide", "-w", help="also the machines of each")] = False, as_json: Json = False
) -> None:
    """List the pools, with how many nodes each has and may have.

    \b
    pilotlight pool list
    pilotlight pool list --wide
    """
    pools = ask(client().pools.list_pools())
    if as_json:
        print_json(pools)
        return
    print_table(
        COLUMNS, [_row(pool) for pool in pools], empty="There are no pools.", right=("nodes", "up", "USD per hour"),
        less=("purchase", "types"),
    )  # fmt: skip
    if wide:
        note("")
        rows = [
            (each["node"], pool["pool"], each["type"], each["zone"], each["state"], each["reason"] or "-")
            for pool in pools
            for each in pool["machines"]
        ]
        print_table(("node", "pool", "type", "zone", "state", "why"), rows, empty="No machine is there.", less=("why",))


@app.command(name="set")
def set_pool(
    name: Name,
    file: Annotated[Path | None, typer.Option(help="TOML: what is said of the pool, in place of what was")] = None,
    gpus: Annotated[str | None, typer.Option(help="of a local pool: 1xT4, in software, of each agent")] = None,
    cores: Annotated[float | None, typer.Option(help="of a local pool: CPU slots of each agent")] = None,
    least_nodes: Annotated[int | None, typer.Option("--least-nodes", help="nodes that are there in any case")] = None,
    most_nodes: Annotated[int | None, typer.Option("--most-nodes", help="nodes that there may be")] = None,
    most_gpus: Annotated[int | None, typer.Option("--most-gpus", help="GPUs that there may be")] = None,
    most_usd: Annotated[float | None, typer.Option("--most-usd", help="dollars an hour that it may cost")] = None,
    weight: Annotated[int | None, typer.Option(help="0 to 100; the pool with the highest is asked first")] = None,
    fallback: Annotated[str | None, typer.Option(help="the pool that is asked when this one has no capacity")] = None,
    consolidate_after: Annotated[
        str | None, typer.Option("--consolidate-after", help="an empty node goes after so long: 30s, 5m")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a pool, or change one. What is not named stays; a drained pool is open again.

    Without --file a new pool is local: its nodes are agents on the machine of 'pilotlight up --pool-agents N'.

    \b
    pilotlight pool set spare --most-nodes 2
    pilotlight pool set spare --gpus 1xT4 --consolidate-after 30s
    pilotlight pool set l4-spot --file l4-spot.toml
    pilotlight pool set l4-spot --most-usd 12.5
    """
    connected = client()
    if file is not None:
        terms = _read(file)
    else:
        known = {pool["pool"]: pool["terms"] for pool in ask(connected.pools.list_pools())}
        new = PoolTerms(types=(MachineType(name="local"),))
        terms = msgspec.convert(known[name], PoolTerms) if name in known else new
    if gpus is not None or cores is not None:
        terms = _with_machine(terms, gpus, cores)
    after_s = None if consolidate_after is None else read_span(consolidate_after, "--consolidate-after")
    given = {
        "least_nodes": least_nodes, "most_nodes": most_nodes, "most_gpus": most_gpus, "most_usd_per_hour": most_usd,
        "weight": weight, "fallback": fallback, "consolidate_after_s": after_s,
    }  # fmt: skip
    terms = msgspec.structs.replace(terms, **{key: value for key, value in given.items() if value is not None})
    found = ask(connected.pools.set_pool(name, terms))
    _report(found, f"may have {terms.most_nodes} nodes", as_json=as_json)


@app.command()
def drain(name: Name, as_json: Json = False) -> None:
    """Let all nodes of a pool go, and launch none.

    Their containers start elsewhere first. 'pilotlight pool set' opens it again.

    \b
    pilotlight pool drain l4-spot
    """
    _report(ask(client().pools.drain_pool(name)), "drains", as_json=as_json)


@app.command()
def rm(name: Name, as_json: Json = False) -> None:
    """Remove a pool that is drained and has no machine any more.

    \b
    pilotlight pool rm l4-spot
    """
    ask(client().pools.delete_pool(name))
    if as_json:
        print_json({"pool": name, "removed": True})
    else:
        note(f"The pool {name} is removed.")


def _read(file: Path) -> PoolTerms:
    try:
        return msgspec.convert(tomllib.loads(file.read_text()), PoolTerms, strict=True)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise OptionError(f"--file: {file} cannot be read: {error}") from None
    except msgspec.ValidationError as error:
        raise OptionError(f"--file: {file}: {error}") from None


def _with_machine(terms: PoolTerms, gpus: str | None, cores: float | None) -> PoolTerms:
    if len(terms.types) != 1 or terms.provider != "local":
        raise OptionError("--gpus and --cores are for local pools with one type: say it in a --file.")
    machine = terms.types[0]
    machine = msgspec.structs.replace(
        machine,
        gpus=machine.gpus if gpus is None else gpus,
        cores=machine.cores if cores is None else cores,
    )
    return msgspec.structs.replace(terms, types=(machine,))


def _report(found: dict[str, Any], what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        note(f"The pool {found['pool']} {what}.")


def _row(pool: dict[str, Any]) -> tuple[str, ...]:
    terms, machines = pool["terms"], pool["machines"]
    up = sum(each["state"] == "up" for each in machines)
    nodes = f"{len(machines)} of {terms['most_nodes']}"
    types = ", ".join(each["name"] for each in terms["types"])
    return (
        pool["pool"], terms["provider"], types, terms["purchase"], nodes, str(up), f"{pool['usd_per_hour']:.2f}",
        pool["state"],
    )  # fmt: skip
