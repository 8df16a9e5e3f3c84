"""`pilotlight policy`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, note, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import OptionError
from pilotlight_core.model.api.supply.supply_api import PolicyInfo
from pilotlight_core.model.supply.policies import (
    IgnoredVulnerability,
    Policy,
    PolicyMode,
    Severity,
    check_policy,
)

REFUSED = 2
"""The exit code of a check that a deploy would not pass."""
app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Platform = Annotated[bool, typer.Option("--platform", help="the operator's policy, which all versions are held to")]
Named = list[str] | None


@app.callback()
def group() -> None:
    """What versions may be made of: rules that warn or refuse."""


@app.command()
def show(platform: Platform = False, as_json: Json = False) -> None:
    """Show the policy on record.

    \b
    pilotlight policy show
    pilotlight policy show --platform
    """
    found = ask(client().supply.get_policy(platform=platform))
    if as_json:
        print_json(found)
        return
    _show(found)


@app.command(name="set")
def set_policy(
    file: Annotated[
        Path | None, typer.Option(help="JSON of a whole policy, as show --json prints it; - reads it")
    ] = None,
    enforce: Annotated[
        bool, typer.Option("--enforce", help="refuse deploys with a finding; else they are told")
    ] = False,
    signed: Annotated[bool, typer.Option("--signed", help="code and artifacts have to be signed")] = False,
    base: Annotated[Named, typer.Option(help="a base environment that may be used: NAME or NAME@DIGEST")] = None,
    no_pickles: Annotated[bool, typer.Option("--no-pickles", help="no file of a model may be a pickle")] = False,
    deny_package: Annotated[Named, typer.Option(help="NAME, perhaps with versions: requests<2.32")] = None,
    deny_licence: Annotated[Named, typer.Option(help="an SPDX id, such as AGPL-*")] = None,
    allow_licence: Annotated[Named, typer.Option(help="an SPDX id; then no other licence may be")] = None,
    vulnerabilities: Annotated[
        Severity | None, typer.Option(help="no package may have known ones from this severity on")
    ] = None,
    ignore: Annotated[Named, typer.Option(help="ID=REASON of a vulnerability that you have looked at")] = None,
    data_days: Annotated[
        float, typer.Option(min=0, help="so old what is known of them may be; 0: as old as it is")
    ] = 0,
    platform: Platform = False,
    as_json: Json = False,
) -> None:
    """Put a policy on record, whole.

    What is not named is not looked for.

    It holds from the next deploy on. What runs is looked at each day, and never ended for it: see 'pilotlight events'.

    \b
    pilotlight policy set --no-pickles --deny-licence 'AGPL-*'
    pilotlight policy set --enforce --signed --vulnerabilities high --data-days 7
    pilotlight policy set --platform --file policy.json
    """
    if file is not None:
        policy = _read(file)
    else:
        policy = Policy(
            mode=PolicyMode.ENFORCE if enforce else PolicyMode.WARN, signed=signed, bases=tuple(base or ()),
            no_pickles=no_pickles, deny_packages=tuple(deny_package or ()), deny_licences=tuple(deny_licence or ()),
            allow_licences=tuple(allow_licence or ()), vulnerabilities=vulnerabilities,
            ignore=tuple(map(_ignored, ignore or ())), data_days=data_days,
        )  # fmt: skip
    check_policy(policy)
    found = ask(client().supply.set_policy(policy, platform=platform))
    if as_json:
        print_json(found)
        return
    _show(found)


@app.command()
def remove(platform: Platform = False, as_json: Json = False) -> None:
    """Take the policy off the record.

    \b
    pilotlight policy remove
    """
    ask(client().supply.remove_policy(platform=platform))
    if as_json:
        print_json({"removed": True, "platform": platform})
        return
    print_text("The policy is removed.")


@app.command()
def check(
    ref: Annotated[str, typer.Argument(help="function, or one of its versions", metavar="APP.FUNCTION[@vN]")],
    as_json: Json = False,
) -> None:
    """Say what policies say of a version now.

    Exit code 2: it could not be deployed.

    \b
    pilotlight policy check shop.rank
    pilotlight policy check shop.rank@v3 --json
    """
    found = ask(client().supply.get_verdict(ref))
    if as_json:
        print_json(found)
    else:
        _show_verdict(found.version, found.findings, found.more)
        age = "nothing" if found.data_age_s is None else f"data that is {span(found.data_age_s)} old"
        print_text(f"Of vulnerabilities the platform knows {age}.")
        for warning in found.warnings:
            note(f"warning: {warning}")
    if not found.allowed:
        raise typer.Exit(REFUSED)


def _show_verdict(ref: str, findings: tuple[dict[str, Any], ...], more: int) -> None:
    state = {True: "refused", False: "warned"}
    rows = [(state[e["enforced"]], e["rule"], e["component"], e["of"], e["says"]) for e in findings]
    columns = ("", "rule", "component", "policy of", "why")
    print_table(columns, rows, empty=f"No policy objects to {ref}.", less=("why",))
    if more:
        note(f"and {more} more")


def _show(found: PolicyInfo) -> None:
    if not found.revision:
        print_text("There is no policy: nothing is looked for.")
        return
    print_text(f"Revision {found.revision}, {ago(found.changed_at)}, by {found.changed_by}.")
    for name, value in msgspec.to_builtins(found.policy).items():
        said = json.dumps(value) if isinstance(value, dict | list) else str(value)
        print_text(f"  {name}: {said}")
    if found.policy.mode is PolicyMode.WARN:
        note("findings are told and refuse nothing: --enforce")


def _ignored(text: str) -> IgnoredVulnerability:
    name, equals, reason = text.partition("=")
    if not (name and equals and reason):
        raise OptionError(f"--ignore {text!r}: expected ID=REASON.", field="--ignore")
    return IgnoredVulnerability(id=name, reason=reason)


def _read(file: Path) -> Policy:
    """A policy as `show --json` prints it, or alone."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.expanduser().read_text()
        found = msgspec.json.decode(text.encode())
        inner = found.get("policy", found) if isinstance(found, dict) else found
        return msgspec.convert(inner, Policy)
    except OSError as error:
        raise OptionError(f"--file: {file} cannot be read: {error.strerror}.", field="--file") from None
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise OptionError(f"--file: {file} is no policy: {error}.", field="--file") from None
