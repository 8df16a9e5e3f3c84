"""`pilotlight container`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.advice import advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text, size, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

app = command_app(no_args_is_help=True)
COLUMNS = (
    "container", "function", "state", "calls", "running", "age", "idle", "memory", "node", "slice", "sandbox",
)  # fmt: skip
LESS = ("sandbox", "slice", "memory", "calls", "idle", "node", "age")
LONGEST_REASON = 60
"""Characters of a reason in a list; --json has all of it."""


@app.callback()
def group() -> None:
    """What runs now."""


@app.command(name="list")
def list_containers(as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False) -> None:
    """List containers, with the sandbox between each and its host.

    \b
    pilotlight container list
    """
    containers = ask(client().platform.list_containers())
    if as_json:
        print_json(containers)
        return
    # On which node each is, operators are told.
    columns = COLUMNS if any("node" in each for each in containers) else tuple(one for one in COLUMNS if one != "node")
    rows = [dict(zip(COLUMNS, _row(container), strict=True)) for container in containers]
    print_table(
        columns,
        [tuple(row[column] for column in columns) for row in rows],
        empty="No containers.",
        right=("calls", "running", "age", "idle", "memory"),
        less=[one for one in LESS if one in columns],
    )


@app.command()
@advising(not_found="'pilotlight container list' shows what runs.")
def stop(
    container: Annotated[str, typer.Argument(help="the container's id")],
    grace: Annotated[
        float | None, typer.Option(help="seconds that its calls have to end in; 0: none. Default: the platform's, 30")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """End a container.

    It takes no new calls, and is killed if its calls have not ended in time. Calls that come start another one: to end
    a function, stop its app.
    One that still starts ends at once. An operator may end any tenant's.

    \b
    pilotlight container stop ctr_greet_1a_3
    pilotlight container stop ctr_greet_1a_3 --grace 0
    """
    ended = ask(client().platform.stop_container(container, grace))
    if as_json:
        print_json(ended)
        return
    where = f" on {ended.node}" if ended.node else ""
    print_text(f"{ended.id}{where} {f'ends within {ended.grace_s:g} s' if ended.grace_s else 'is killed'}.")


def _row(container: dict[str, Any]) -> tuple[Any, ...]:
    memory = container.get("memory_bytes", 0)
    return (
        container.get("id", ""),
        f"{container.get('app', '')}.{container.get('function', '')}",
        _state(container),
        container.get("calls", 0),
        f"{container.get('running', 0)}/{container.get('slots', 0)}",
        span(float(container.get("age_s", 0.0))),
        span(float(container.get("idle_s", 0.0))),
        size(memory) if memory else "-",
        container.get("node", ""),
        container.get("slice", ""),
        container.get("sandbox", ""),
    )


def _state(container: dict[str, Any]) -> str:
    """Return the state, why it drains, and open circuit breakers."""
    parts = [str(container.get("state", ""))]
    if parts == ["draining"] and (reason := str(container.get("reason", ""))):
        parts = [f"draining: {reason if len(reason) <= LONGEST_REASON else reason[:LONGEST_REASON] + '…'}"]
    for of, key in (("", "breaker"), ("version's ", "version_breaker")):
        if (state := container.get(key, "closed")) != "closed":
            parts.append(f"{of}breaker {str(state).replace('_', ' ')}")
    if tenants := container.get("tenant_breakers", 0):
        parts.append(f"breakers of {tenants} tenant{'s' if tenants > 1 else ''}")
    return ", ".join(parts)
