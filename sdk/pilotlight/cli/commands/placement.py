"""`pilotlight placement`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.advice import advising
from pilotlight.cli.arguments import read_ref
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import Misuse
from pilotlight.packing import find_target, load_apps
from pilotlight.packing.target import SEPARATOR

app = command_app(no_args_is_help=True)
LISTS = "'pilotlight container list' shows what runs, 'pilotlight app list' what is deployed."
Json = Annotated[bool, typer.Option("--json", help="print JSON")]


@app.callback()
def group() -> None:
    """Where containers are, and why."""


@app.command()
def explain(
    subject: Annotated[
        str, typer.Argument(help="a container's id, app.function, app.Class.method or tenant:app.function")
    ] = "",
    why_not: Annotated[str, typer.Option("--why-not", help="a node: why it was not chosen", metavar="NODE")] = "",
    as_json: Json = False,
) -> None:
    """Explain the place of a container.

    Of a function, explain all containers, past and present, with version and time; with --why-not, a node's rejection.

    \b
    pilotlight placement explain ctr_embed_1_4
    pilotlight placement explain search.embed
    pilotlight placement explain ctr_embed_1_4 --why-not node-7
    pilotlight placement explain --why-not node-7        (of the last decision)
    """
    if not subject and not why_not:
        raise Misuse("Name a container, a function, or a node with --why-not.", field="subject")
    method = ""
    if subject.count(".") > 1:
        found, named = read_ref(subject, None)
        subject, method = str(found), named or ""
    with advising(not_found=LISTS):
        explanation = ask(client().platform.explain_placement(subject, why_not, method))
    if as_json:
        print_json(explanation)
        return
    for line in explanation["lines"]:
        print_text(line)


@app.command()
def plan(
    function: Annotated[
        str, typer.Argument(help="app.function or app.Class.method of what is deployed; or file.py, file.py::function")
    ],
    rps: Annotated[float | None, typer.Option(help="calls per second: how many containers carry them")] = None,
    as_json: Json = False,
) -> None:
    """Show how much GPU memory functions need.

    The report has a line for each part, the known speed, and whether the fleet has room. All methods of a class run
    in one container, so the class is planned.

    \b
    pilotlight placement plan chat.generate
    pilotlight placement plan chat.generate --rps 50    (containers by measured or learnt curves)
    pilotlight placement plan embeddings.MiniLM.embed   (of its class)
    pilotlight placement plan chat/app.py::generate     (before it is deployed)
    """
    plans = _of_file(function) if is_file(function) else [_of_deployed(function, rps)]
    if as_json:
        print_json(plans[0] if len(plans) == 1 else plans)
    else:
        print_text("\n\n".join("\n".join((each["version"], *each["lines"])) for each in plans))
    if not all(each["fits"] for each in plans):
        raise typer.Exit(1)


def is_file(text: str) -> bool:
    """Whether `text` means a file, not a deployed function."""
    return text.endswith(".py") or SEPARATOR in text or "/" in text


def _of_deployed(text: str, rps: float | None) -> dict[str, Any]:
    found, method = read_ref(text, None)
    return ask(client().platform.plan_deployed(str(found), rps, method or ""))


def _of_file(text: str) -> list[dict[str, Any]]:
    place, separator, name = text.partition(SEPARATOR)
    name, _, method = name.partition(".")
    target = find_target(f"{place}{separator}{name}", within=Path.cwd())
    found = [(spec, app.base) for app in load_apps(target).values() for spec in app.specs.values()]
    wanted = [(spec, base) for spec, base in found if target.function in (None, spec.name)]
    return [ask(client().platform.plan_undeployed(spec, method, base=base)) for spec, base in wanted]
