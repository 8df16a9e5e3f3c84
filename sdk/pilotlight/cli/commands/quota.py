"""`pilotlight quota`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.advice import advising
from pilotlight.cli.arguments import read_arguments, read_part
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Tenant = Annotated[str, typer.Argument(help="the tenant's name")]
Function = Annotated[str | None, typer.Option(help="only calls to this function: app.function or owner:app.function")]
PARTS = ("guarantee", "borrow")
"""Limits that are parts of the fleet."""
LIMITS_ADVICE = "Give limits as name=value, such as requests_per_s=50; see 'pilotlight quota set --help'."
TIER_FIELDS = ("rank", "weight", "priority_ceiling", "reserved_share")
TIER_COLUMNS = ("tier", "rank", "weight", "ceiling", "reserved", "limits", "from")


@app.callback()
def group() -> None:
    """Limits and tiers of tenants."""


@app.command()
def show(tenant: Tenant, as_json: Json = False) -> None:
    """Show a tenant's limits: its own, and those of its tier.

    \b
    pilotlight quota show acme
    """
    found = ask(client().tenancy.get_limits(tenant))
    if as_json:
        print_json(found)
        return
    effective, own = found.get("effective", {}), found.get("limits", {})
    rows = [("all calls", name, _value(name, value), _origin(name, own, found)) for name, value in effective.items()]
    for function, limits in found.get("functions", {}).items():
        rows += [(function, name, _number(value), "set for it") for name, value in limits.items()]
    print_table(("calls", "limit", "value", "from"), rows, empty=f"{tenant} is not limited.", right=("value",))


@app.command(name="set")
def set_limits(
    tenant: Annotated[str | None, typer.Argument(help="the tenant's name; not with --tier")] = None,
    limits: Annotated[list[str] | None, typer.Argument(help="limit=value …; what is not given is not set")] = None,
    function: Function = None,
    ahead: Annotated[bool, typer.Option("--ahead", help="of a function that is not deployed yet")] = False,
    tier: Annotated[str | None, typer.Option(help="--guarantee and --borrow are for each tenant of this tier")] = None,
    guarantee: Annotated[
        str | None, typer.Option(help="part of the fleet that it gets when it wants it, such as 20%")
    ] = None,
    borrow: Annotated[str | None, typer.Option(help="how much more of the fleet it may have, such as 50%")] = None,
    as_json: Json = False,
) -> None:
    """Replace a tenant's own limits, which go over its tier's. They hold everywhere within a second.

    Limits: requests_per_s, burst, cost_per_s, cost_burst (GPU-milliseconds), tokens_per_s, tokens_burst, concurrency,
    payload_bytes, prompt_tokens and output_tokens (of one call), queue_calls, queue_seconds, timeout_s. Of the tenant
    alone: containers, gpus, floor_containers, apps, functions, versions, open_functions, record_bytes, blob_bytes,
    keys, deploys_per_hour, api_requests_per_s, open_requests, log_bytes_per_hour, and guarantee and borrow, which are
    parts of the fleet from 0 to 1.
    With --guarantee and --borrow alone, whatever else is set stays.

    \b
    pilotlight quota set acme --guarantee 20% --borrow 50%
    pilotlight quota set --tier enterprise --guarantee 10%
    pilotlight quota set acme requests_per_s=50 burst=100 concurrency=20
    pilotlight quota set acme containers=8 gpus=4 timeout_s=3600
    pilotlight quota set acme requests_per_s=5 --function llm.chat
    pilotlight quota set acme tokens_per_s=2000 tokens_burst=60000 prompt_tokens=8192 output_tokens=1024
    """
    shares = _shares(guarantee, borrow)
    if tier is not None:
        if tenant is not None or limits or function or not shares:
            raise typer.BadParameter(
                "--tier is given with --guarantee or --borrow alone; see 'pilotlight quota set-tier'"
            )
        _set_tier_shares(tier, shares, as_json=as_json)
        return
    if tenant is None:
        raise typer.BadParameter("name a tenant, or a tier by --tier")
    if not limits and not shares:
        raise typer.BadParameter(
            "give a limit, such as requests_per_s=50; 'pilotlight quota clear' removes what is set"
        )
    if shares and function:
        raise typer.BadParameter("--guarantee and --borrow are of a tenant, not of its calls to one function")
    wanted = read_arguments(limits, None) if limits else ask(client().tenancy.get_limits(tenant)).get("limits", {})
    if twice := sorted(shares.keys() & wanted.keys()) if limits else []:
        raise typer.BadParameter(f"{twice[0]} is given twice")
    wanted |= shares
    with advising(unknown_function="If it is deployed later, add --ahead.", bad_input=LIMITS_ADVICE):
        answer = ask(client().tenancy.set_limits(tenant, function, wanted, ahead=ahead))
    if as_json:
        print_json(answer)
    else:
        what = f"calls of {tenant} to {answer['function']}" if function else f"all calls of {tenant}"
        print_text(f"{what}: {_limits(answer.get('limits', {}))}")


def _set_tier_shares(name: str, shares: dict[str, float], *, as_json: bool) -> None:
    """Change what each tenant of a tier is guaranteed and may borrow; the rest of the tier stays."""
    known = next((tier for tier in ask(client().tenancy.list_tiers()) if tier["name"] == name), None)
    if known is None:
        raise typer.BadParameter(f"there is no tier {name}; see 'pilotlight quota tiers'", param_hint="--tier")
    fields = {key: value for key, value in known.items() if key in TIER_FIELDS}
    changed = ask(client().tenancy.set_tier(name, fields | {"limits": known.get("limits", {}) | shares}))
    if as_json:
        print_json(changed)
    else:
        print_text(f"each tenant of the tier {name}: {_limits(changed.get('limits', {}))}")


def _shares(guarantee: str | None, borrow: str | None) -> dict[str, float]:
    """What of the options is given, as parts of the fleet."""
    given = (("guarantee", guarantee), ("borrow", borrow))
    return {name: read_part(text, f"--{name}") for name, text in given if text is not None}


@app.command()
def clear(tenant: Tenant, function: Function = None, as_json: Json = False) -> None:
    """Remove a tenant's own limits: its tier's hold again.

    \b
    pilotlight quota clear acme
    pilotlight quota clear acme --function llm.chat
    """
    ask(client().tenancy.clear_limits(tenant, function))
    if as_json:
        print_json({"tenant": tenant, "function": function, "limits": {}})
    else:
        print_text(f"Nothing is set any more for {f'calls of {tenant} to {function}' if function else tenant}.")


@app.command()
def tiers(as_json: Json = False) -> None:
    """List the tiers, the first to give way first.

    \b
    pilotlight quota tiers
    pilotlight quota tiers --json
    """
    found = ask(client().tenancy.list_tiers())
    if as_json:
        print_json(found)
        return
    rows = [_tier(tier) for tier in found]
    print_table(TIER_COLUMNS, rows, empty="No tiers.", right=("rank", "weight", "reserved"))


@app.command()
def set_tier(
    name: Annotated[str, typer.Argument(help="the tier's name")],
    fields: Annotated[list[str] | None, typer.Argument(help="field=value …; limits.FIELD=value …")] = None,
    as_json: Json = False,
) -> None:
    """Make a tier, or replace a configured one as a whole.

    Fields: rank, weight, priority_ceiling, reserved_share, and limits.… as in 'quota set'.

    \b
    pilotlight quota set-tier trial rank=-1 weight=0.5 priority_ceiling=batch limits.requests_per_s=2
    """
    given = read_arguments(fields or [], None)
    own = {key: value for key, value in given.items() if not key.startswith("limits.")}
    limits = {key.removeprefix("limits."): value for key, value in given.items() if key.startswith("limits.")}
    tier = ask(client().tenancy.set_tier(name, own | {"limits": limits}))
    if as_json:
        print_json(tier)
    else:
        print_table(TIER_COLUMNS, [_tier(tier)], empty="")


@app.command()
def drop_tier(name: Annotated[str, typer.Argument(help="the tier's name")], as_json: Json = False) -> None:
    """Remove the tier of a 'set-tier'. The configured one of that name holds again.

    \b
    pilotlight quota drop-tier trial
    """
    ask(client().tenancy.delete_tier(name))
    if as_json:
        print_json({"name": name, "dropped": True})
    else:
        print_text(f"Dropped {name}.")


def _origin(name: str, own: dict[str, Any], found: dict[str, Any]) -> str:
    return "set for it" if name in own else f"tier {found.get('tier', '')}"


def _tier(tier: dict[str, Any]) -> tuple[Any, ...]:
    return (
        tier.get("name", ""),
        tier.get("rank", 0),
        f"{float(tier.get('weight', 1.0)):g}",
        tier.get("priority_ceiling", ""),
        f"{float(tier.get('reserved_share', 0.0)):.0%}",
        _limits(tier.get("limits", {})),
        tier.get("source", ""),
    )


def _limits(limits: dict[str, Any]) -> str:
    return " ".join(f"{name}={_value(name, value)}" for name, value in limits.items()) or "not limited"


def _number(value: Any) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _value(name: str, value: Any) -> str:
    """A limit's value; parts of the fleet in percent."""
    return f"{float(value) * 100:.15g}%" if name in PARTS else _number(value)
