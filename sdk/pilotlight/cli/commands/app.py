"""`pilotlight app`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import app_names
from pilotlight.cli.confirm import confirmed
from pilotlight.cli.output import ago, print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.api.call_api import AppInfo
from pilotlight_core.model.tenancy import EVERYBODY

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the app's name", autocompletion=app_names)]


@app.callback()
def group() -> None:
    """What is deployed."""


@app.command(name="list")
def list_apps(as_json: Json = False) -> None:
    """List apps and their functions.

    \b
    pilotlight app list
    pilotlight app list --json | jq -r '.[].app'
    """
    apps = ask(client().platform.list_apps())
    if as_json:
        print_json(apps)
        return
    columns = ("app", "function", "version", "needs", "containers", "deployed")
    print_table(
        columns,
        [row for info in apps for row in _rows(info)],
        empty="Nothing is deployed: try 'pilotlight deploy examples/hello/app.py'.",
        right=("containers",),
        less=("needs", "deployed"),
    )


@app.command()
@advising(not_found=DEPLOYED)
def history(name: Name, as_json: Json = False) -> None:
    """List an app's deploys, newest first.

    \b
    pilotlight app history hello
    """
    deploys = ask(client().platform.list_deploys(name))
    if as_json:
        print_json(deploys)
        return
    rows = [_deploy(deploy) for deploy in sorted(deploys, key=lambda deploy: -int(deploy.get("revision", 0)))]
    print_table(
        ("revision", "deployed", "by", "functions", "message"), rows, empty=f"{name} was never deployed.", less=("by",)
    )


@app.command()
@advising(not_found=DEPLOYED)
def stop(name: Name, as_json: Json = False) -> None:
    """Take an app out of service. Its containers end; a deploy brings it back.

    \b
    pilotlight app stop hello
    """
    answer = ask(client().platform.stop_app(name))
    if as_json:
        print_json(answer)
    else:
        print_text(f"Stopped {name}.")


@app.command()
@advising(not_found=DEPLOYED)
def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="do not ask")] = False,
    as_json: Json = False,
) -> None:
    """Delete an app with all its versions. What runs of it ends, and jobs that wait for it fail.

    \b
    pilotlight app delete hello
    pilotlight app delete hello --yes
    """
    if not yes and not confirmed(f"Delete {name} with all its versions?"):
        raise Misuse(f"{name} is not deleted: to delete it, say yes or add --yes.", field="yes")
    answer = ask(client().platform.delete_app(name))
    if as_json:
        print_json(answer)
    else:
        print_text(f"Deleted {name}.")


@app.command()
@advising(not_found=DEPLOYED)
def share(
    name: Name,
    tenant: Annotated[str, typer.Argument(help="who may call it; '*' is everybody")],
    functions: Annotated[list[str] | None, typer.Argument(help="only these functions; default: all")] = None,
    as_json: Json = False,
) -> None:
    """Let another tenant call an app's functions, at its own cost. Logs and tracebacks stay yours.

    \b
    pilotlight app share llm acme
    pilotlight app share llm '*' chat
    """
    answer = ask(client().tenancy.share_app(name, tenant, tuple(functions or ())))
    if as_json:
        print_json(answer)
    else:
        print_text(f"{_whom(tenant)} may call {', '.join(answer.get('functions', ())) or 'all functions'} of {name}.")


@app.command()
@advising(not_found=DEPLOYED)
def unshare(
    name: Name, tenant: Annotated[str, typer.Argument(help="as it was shared with")], as_json: Json = False
) -> None:
    """Stop sharing an app with a tenant.

    \b
    pilotlight app unshare llm acme
    """
    ask(client().tenancy.unshare_app(name, tenant))
    if as_json:
        print_json({"app": name, "grantee": tenant, "shared": False})
    else:
        print_text(f"{name} is not shared with {tenant} any more.")


@app.command()
@advising(not_found=DEPLOYED)
def shares(name: Name, as_json: Json = False) -> None:
    """List the tenants that may call an app's functions.

    \b
    pilotlight app shares llm
    """
    found = ask(client().tenancy.list_shares(name))
    if as_json:
        print_json(found)
        return
    rows = [(one["grantee"], ", ".join(one.get("functions", ())) or "all") for one in found]
    print_table(("tenant", "functions"), rows, empty=f"{name} is not shared.")


@app.command()
def shared(as_json: Json = False) -> None:
    """List the functions of other tenants that you may call.

    \b
    pilotlight app shared
    pilotlight call acme:llm.chat prompt=Hello
    """
    found = ask(client().tenancy.list_shared())
    if as_json:
        print_json(found)
        return
    rows = [(one["ref"], one["owner"]) for one in found]
    print_table(("function", "owner"), rows, empty="No functions are shared with you.")


def _whom(tenant: str) -> str:
    return "Everybody" if tenant == EVERYBODY else tenant


def _rows(info: AppInfo) -> list[tuple[Any, ...]]:
    when = "stopped" if info.stopped else ago(info.deployed_at)
    return [
        (
            info.app,
            function.name,
            function.version.rpartition("@")[2],
            " or ".join(str(ask) for ask in function.spec.gpu) or "CPU",
            function.containers,
            when,
        )
        for function in info.functions
    ] or [(info.app, "-", "-", "-", 0, when)]


def _deploy(deploy: dict[str, Any]) -> tuple[Any, ...]:
    functions = [f"{name}@{version}" for name, version in (deploy.get("versions") or {}).items()]
    return (
        deploy.get("revision", ""),
        ago(float(deploy.get("at", 0.0))),
        deploy.get("by", ""),
        ", ".join(functions) or "-",
        deploy.get("message", ""),
    )
