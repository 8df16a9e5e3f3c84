"""`pilotlight app`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from pilotlight.cli.commands import command_app
from pilotlight.cli.output import ago, print_json, print_table
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api import AppInfo

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the app's name")]


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
    apps = ask(client().platform.apps())
    if as_json:
        print_json(apps)
        return
    columns = ("app", "function", "version", "needs", "containers", "deployed")
    print_table(
        columns,
        [row for info in apps for row in _rows(info)],
        empty="Nothing is deployed: try 'pilotlight deploy examples/hello/app.py'.",
        right=("containers",),
    )


@app.command()
def history(name: Name, as_json: Json = False) -> None:
    """List an app's deploys, the newest first.

    \b
    pilotlight app history hello
    """
    deploys = ask(client().platform.history(name))
    if as_json:
        print_json(deploys)
        return
    rows = [_deploy(deploy) for deploy in sorted(deploys, key=lambda deploy: -int(deploy.get("revision", 0)))]
    print_table(("revision", "deployed", "by", "functions", "message"), rows, empty=f"{name} was never deployed.")


@app.command()
def stop(name: Name, as_json: Json = False) -> None:
    """Take an app out of service: its containers end; a deploy brings it back.

    \b
    pilotlight app stop hello
    """
    answer = ask(client().platform.stop(name))
    if as_json:
        print_json(answer)
    else:
        print(f"Stopped {name}.")


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
    functions = deploy.get("functions") or {}
    return (
        deploy.get("revision", ""),
        ago(float(deploy.get("at", 0.0))),
        deploy.get("by", ""),
        ", ".join(functions) or "-",
        deploy.get("message", ""),
    )
