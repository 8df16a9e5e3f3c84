"""`pilotlight issuer`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import note, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.api.issuer_api import LEEWAY_S, USUAL_ALGORITHMS, IssuerRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="its name here, such as corp")]


@app.callback()
def group() -> None:
    """OpenID issuers whose tokens are taken in place of API keys."""


@app.command(name="set")
def set_issuer(
    name: Name,
    url: Annotated[str, typer.Argument(help="its address, as its tokens have it (iss)")],
    audience: Annotated[str, typer.Option(help="whom its tokens have to be for (aud); default: the client id")] = "",
    client_id: Annotated[str, typer.Option(help="under which people log in; without it nobody does")] = "",
    tenant: Annotated[
        list[str] | None,
        typer.Option(help="whose all its tokens are; with --tenant-claim: VALUE=TENANT, as often as needed; or '*'"),
    ] = None,
    tenant_claim: Annotated[str, typer.Option(help="the claim that says which tenant")] = "",
    group_: Annotated[
        list[str] | None, typer.Option("--group", help="GROUP=SCOPE,…: what a group may; '*' is everybody")
    ] = None,
    groups_claim: Annotated[str, typer.Option(help="the claim that lists the groups")] = "groups",
    algorithm: Annotated[list[str] | None, typer.Option(help="by which its tokens may be signed")] = None,
    leeway: Annotated[float, typer.Option(min=0, max=300, help="seconds by which clocks may differ")] = LEEWAY_S,
    jwks_url: Annotated[str, typer.Option(help="where its keys are; default: where it says now")] = "",
    login_scope: Annotated[str, typer.Option(help="what a login asks for")] = "openid offline_access",
    parameter: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, which a login says too, such as resource=… or audience=…")
    ] = None,
    as_json: Json = False,
) -> None:
    """Take tokens of an issuer. What it had on record is replaced whole; what is not named gives no access.

    \b
    pilotlight issuer set corp https://login.example.com --client-id pilotlight --tenant acme --group eng=invoke,deploy
    pilotlight issuer set ci https://ci.example.com --audience pilotlight --tenant-claim org --tenant acme-corp=acme \\
        --groups-claim scope --group deploy=deploy,read
    """
    tenants = dict(_pair(each, "--tenant") for each in tenant or ()) if tenant_claim else {}
    if not tenant_claim and len(tenant or ()) != 1:
        raise OptionError("--tenant: expected one, or --tenant-claim with VALUE=TENANT for each.", field="--tenant")
    fixed = "" if tenant_claim else (tenant or [""])[0]
    request = IssuerRequest(
        url=url, audience=audience or client_id, client_id=client_id, jwks_url=jwks_url,
        algorithms=tuple(algorithm or USUAL_ALGORITHMS), tenant=fixed, tenant_claim=tenant_claim, tenants=tenants,
        groups_claim=groups_claim, groups={found: _scopes(said) for found, said in _pairs(group_, "--group")},
        leeway_s=leeway, login_scope=login_scope, login_parameters=dict(_pairs(parameter, "--parameter")),
    )  # fmt: skip
    made = ask(client().issuers.set_issuer(name, request))
    if as_json:
        print_json(made)
        return
    print_text(f"Tokens of {made['url']} for {made['audience']} are taken; its keys are at {made['jwks_url']}.")
    if not request.groups:
        note("No group has any scope yet, so they give no access: see --group.")


@app.command(name="list")
def list_issuers(as_json: Json = False) -> None:
    """List the issuers, and how this gateway stands with their keys.

    \b
    pilotlight issuer list
    """
    issuers = ask(client().issuers.list_issuers())
    if as_json:
        print_json(issuers)
        return
    print_table(
        ("issuer", "url", "audience", "tenants", "groups", "keys"),
        [_row(issuer) for issuer in issuers],
        empty="No issuers: API keys alone are taken.",
        less=("audience",),
    )


@app.command()
def remove(name: Name, as_json: Json = False) -> None:
    """Take tokens of an issuer no more. What they have begun ends within a second.

    \b
    pilotlight issuer remove corp
    """
    ask(client().issuers.remove_issuer(name))
    if as_json:
        print_json({"name": name, "removed": True})
        return
    print_text(f"Tokens of {name} are not taken any more.")


def _pairs(words: list[str] | None, option: str) -> list[tuple[str, str]]:
    return [_pair(each, option) for each in words or ()]


def _pair(word: str, option: str) -> tuple[str, str]:
    if option == "--tenant" and word == "*":
        return "*", "*"
    name, equals, value = word.rpartition("=") if option == "--tenant" else word.partition("=")
    if not (name and equals and value):
        raise OptionError(f"{option} {word!r}: expected NAME=VALUE.", field=option)
    return name, value


def _scopes(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _row(issuer: dict[str, Any]) -> tuple[str, ...]:
    by_claim = ", ".join(f"{value}={tenant}" for value, tenant in issuer.get("tenants", {}).items())
    groups = ", ".join(f"{name}={'+'.join(scopes)}" for name, scopes in issuer.get("groups", {}).items())
    age = issuer.get("keys_age_s")
    keys = "not asked yet" if age is None else f"{issuer.get('keys')}, {span(float(age))} old"
    problem = issuer.get("problem")
    return (
        issuer.get("name", ""), issuer.get("url", ""), issuer.get("audience", ""), issuer.get("tenant") or by_claim,
        groups, f"{keys}; {problem}" if problem else keys,
    )  # fmt: skip
