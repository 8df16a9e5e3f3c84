"""`pilotlight app`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import app_names
from pilotlight.cli.confirm import confirmed
from pilotlight.cli.output import ago, note, print_json, print_text
from pilotlight.cli.schedule_rows import next_tick_text, schedule_rows
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import Misuse, NotFound
from pilotlight_core.model.api.call_api import AppInfo
from pilotlight_core.model.tenancy import EVERYBODY

app = command_app(no_args_is_help=True)
PAGE = 1_000
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
def rollback(
    name: Name,
    to: Annotated[int | None, typer.Option("--to", help="the revision, as 'app history' lists them", min=1)] = None,
    reason: Annotated[str, typer.Option("--reason", help="why, for the history and the audit log")] = "",
    as_json: Json = False,
) -> None:
    """Go back to the deploy before, or abort a rollout.

    The rollout that is under way is aborted; without one, what was deployed before is put into service again. Nothing
    is uploaded or built. Calls that wait go to the old version too; what runs ends where it is.

    \b
    pilotlight app rollback hello
    pilotlight app rollback hello --to 3 --reason "wrong answers"
    """
    answer = ask(client().aliases.roll_back(name, to, reason))
    if as_json:
        print_json(answer)
        return
    back = f" to revision {answer.back_to}" if answer.back_to else ""
    print_text(f"Rolled {name} back{back} (revision {answer.revision}).")
    for sentence in answer.sentences:
        print_text(sentence)


@app.command()
@advising(not_found=DEPLOYED)
def schedules(
    name: Annotated[str, typer.Argument(help="only this app's; default: all", autocompletion=app_names)] = "",
    as_json: Json = False,
) -> None:
    """List what runs by itself, the next first.

    \b
    pilotlight app schedules
    pilotlight job list --function etl.nightly
    """
    apps = [info for info in ask(client().platform.list_apps()) if name in ("", info.app)]
    if name and not apps:
        raise NotFound(f"There is no app {name}.")
    rows = sorted(schedule_rows(apps), key=lambda row: (row.next_tick is None, row.next_tick or 0, row.function))
    if as_json:
        print_json(rows)
        return
    at = time.time()
    shown = [(row.function, row.schedule, next_tick_text(row, at)) for row in rows]
    print_table(
        ("function", "schedule", "next tick"), shown, empty="Nothing runs by itself: schedule=Cron(…) says when."
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
def shared(
    everybody: Annotated[bool, typer.Option("--all", help="also functions that are shared with everybody")] = False,
    owner: Annotated[str, typer.Option(help="only this tenant's functions")] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", help="how many", min=1)] = 100,
    as_json: Json = False,
) -> None:
    """List the functions of other tenants that you may call.

    \b
    pilotlight app shared
    pilotlight app shared --all --owner acme
    pilotlight call acme:llm.chat prompt=Hello
    """
    found, more = _shared(limit, owner, everybody=everybody)
    if as_json:
        print_json(found)
        return
    rows = [(one["ref"], one["owner"]) for one in found]
    nothing = "No functions are shared with you." + (" --all lists those that everybody may call." * (not everybody))
    print_table(("function", "owner"), rows, empty=nothing)
    if more:
        note(f"There are more than {limit}: -n shows more, --owner those of one tenant.")


def _shared(limit: int, owner: str, *, everybody: bool) -> tuple[list[dict[str, Any]], bool]:
    """Return the first `limit` functions, and whether there are more."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while len(found) < limit:
        size = min(PAGE, limit - len(found))
        page = ask(client().tenancy.list_shared(everybody=everybody, owner=owner, limit=size, cursor=cursor))
        found += page["shared"]
        cursor = page.get("next") or ""
        if not cursor:
            break
    return found, bool(cursor)


def _whom(tenant: str) -> str:
    return "Everybody" if tenant == EVERYBODY else tenant


def _rows(info: AppInfo) -> list[tuple[Any, ...]]:
    when = "stopped" if info.stopped else ago(info.deployed_at)
    rows: list[tuple[Any, ...]] = []
    for function in info.functions:
        needs = " or ".join(str(ask) for ask in function.spec.gpu) or "CPU"
        version = function.version.rpartition("@")[2]
        rows.append((info.app, function.name, version, needs, function.containers, when))
        rows += [
            (info.app, f"{function.name} ({hook.stage})", version, "CPU", hook.containers, when)
            for hook in function.hooks
        ]
    return rows or [(info.app, "-", "-", "-", 0, when)]


def _deploy(deploy: dict[str, Any]) -> tuple[Any, ...]:
    functions = [f"{name}@{version}" for name, version in (deploy.get("versions") or {}).items()]
    message = deploy.get("message", "")
    if not deploy.get("traffic", True):
        message = f"no traffic{f': {message}' if message else ''}"
    return (
        deploy.get("revision", ""),
        ago(float(deploy.get("at", 0.0))),
        deploy.get("by", ""),
        ", ".join(functions) or "-",
        message,
    )
