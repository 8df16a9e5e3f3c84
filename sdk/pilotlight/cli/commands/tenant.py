"""`pilotlight tenant`."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.erasure_api import ErasureInfo, ErasureState
from pilotlight_core.model.api.tenancy_api import STRANGERS_TIER, TenantChange, TenantRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the tenant's name")]
COLUMNS = ("tenant", "tier", "weight", "created", "state", "network")
NOTHING = "none"


@app.callback()
def group() -> None:
    """Owners of functions, for operators."""


@app.command()
def create(
    name: Name,
    tier: Annotated[str, typer.Option(help="its tier: see 'pilotlight quota tiers'")] = STRANGERS_TIER,
    weight: Annotated[float, typer.Option(help="its share among tenants of its tier")] = 1.0,
    as_json: Json = False,
) -> None:
    """Make a tenant. It needs a key to call anything.

    \b
    pilotlight tenant create acme --tier paid
    pilotlight key create --tenant acme --scopes admin
    """
    _show(ask(client().tenancy.create_tenant(TenantRequest(name=name, tier=tier, weight=weight))), as_json=as_json)


@app.command(name="list")
def list_tenants(as_json: Json = False) -> None:
    """List tenants.

    \b
    pilotlight tenant list
    pilotlight tenant list --json | jq -r '.[] | select(.tier == "free").name'
    """
    tenants = ask(client().tenancy.list_tenants())
    if as_json:
        print_json(tenants)
    else:
        print_table(COLUMNS, [_row(tenant) for tenant in tenants], empty="No tenants.", right=("weight",))


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """Show a tenant, also your own.

    \b
    pilotlight tenant show acme
    """
    _show(ask(client().tenancy.get_tenant(name)), as_json=as_json)


@app.command(name="set")
def change(
    name: Name,
    tier: Annotated[str | None, typer.Option(help="its tier")] = None,
    weight: Annotated[float | None, typer.Option(help="its share among tenants of its tier")] = None,
    network: Annotated[
        list[str] | None,
        typer.Option(help="all its functions may connect to: '*.example.com:443', may be repeated, or 'none'"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Change a tenant's tier, weight or network.

    It holds everywhere within a second. What is taken from its network ends the containers that had asked for it, with
    the grace of a stop.

    \b
    pilotlight tenant set acme --tier enterprise
    pilotlight tenant set acme --network api.example.com:443 --network '*.example.org:443'
    pilotlight tenant set acme --network none
    """
    targets = None if network is None else tuple(target for target in network if target != NOTHING)
    change = TenantChange(tier=tier, weight=weight, network=targets)
    _show(ask(client().tenancy.update_tenant(name, change)), as_json=as_json)


@app.command()
def disable(name: Name, as_json: Json = False) -> None:
    """Refuse a tenant's keys, and calls to its functions. Nothing is deleted.

    \b
    pilotlight tenant disable acme
    """
    _show(ask(client().tenancy.update_tenant(name, TenantChange(disabled=True))), as_json=as_json)


@app.command()
def enable(name: Name, as_json: Json = False) -> None:
    """Accept a disabled tenant's keys again.

    \b
    pilotlight tenant enable acme
    """
    _show(ask(client().tenancy.update_tenant(name, TenantChange(disabled=False))), as_json=as_json)


@app.command()
def erase(
    name: Name,
    confirm: Annotated[str, typer.Option("--confirm", help="what the first step printed: do it")] = "",
    as_json: Json = False,
) -> None:
    """Delete all that a tenant has, but its lines in the ledger. Two steps: the first disables it, and says what goes.

    The second destroys its keys first: sealed blobs and secrets are unreadable from then on, wherever there are copies.
    It can be repeated after anything that interrupts it. Nobody can take the name again. Until the second step
    'pilotlight tenant enable' takes all back.

    \b
    pilotlight tenant erase acme
    pilotlight tenant erase acme --confirm 3kf…
    """
    tenancy = client().tenancy
    told = ask(tenancy.erase_tenant(name, confirm) if confirm else tenancy.plan_erasure(name))
    if as_json:
        print_json(msgspec.to_builtins(told))
    else:
        _report(told)
    if told.state is ErasureState.ERASING:
        raise typer.Exit(1)


def _report(told: ErasureInfo) -> None:
    rows = [(kind, f"{count:,}") for kind, count in told.found.items()]
    rows += [("bytes of blobs", f"{told.blob_bytes:,}")] if told.blob_bytes else []
    rows += [("containers", f"{told.containers:,}")] if told.containers else []
    print_table(("kind", "records"), rows, empty="It has nothing.", right=("records",))
    for kept in told.keeps:
        print_text(f"stays: {kept}")
    if told.state is ErasureState.PLANNED:
        print_text(f"{told.tenant} is disabled: its keys are refused, and its containers end. Nothing is deleted yet.")
        print_text(f"Delete all of it:  pilotlight tenant erase {told.tenant} --confirm {told.confirmation}")
        print_text(f"Take it back:      pilotlight tenant enable {told.tenant}")
    elif told.state is ErasureState.ERASED:
        print_text(f"{told.tenant} is erased.")
    else:
        print_text(f"{told.tenant} is not erased whole yet: {told.why or 'something was left'}. Run the same again.")


def _show(tenant: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(tenant)
    else:
        print_table(COLUMNS, [_row(tenant)], empty="", right=("weight",))


def _row(tenant: dict[str, Any]) -> tuple[Any, ...]:
    return (
        tenant.get("name", ""),
        tenant.get("tier", ""),
        f"{float(tenant.get('weight', 1.0)):g}",
        ago(float(tenant.get("created_at") or 0.0)),
        _state(tenant),
        _network(tenant.get("network") or []),
    )


def _state(tenant: dict[str, Any]) -> str:
    if tenant.get("erased_at"):
        return "erasing" if tenant.get("erasure_open") else "erased"
    return "disabled" if tenant.get("disabled") else "active"


def _network(targets: list[str]) -> str:
    return NOTHING if not targets else targets[0] if len(targets) == 1 else f"{targets[0]}, {len(targets) - 1} more"
