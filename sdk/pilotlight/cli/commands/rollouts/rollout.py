"""`pilotlight rollout`."""

from __future__ import annotations

from typing import Annotated

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import app_names
from pilotlight.cli.output import ago, note, print_json, print_text
from pilotlight.cli.rollout_watch import check_outcome, draw, follow_rollout, headline
from pilotlight.cli.rollout_wish import BAKE, EVERY, STEPS, show_started
from pilotlight.cli.rollout_words import (
    read_answer_tolerance,
    read_guards,
    read_headers,
    read_steps,
    read_tolerance,
    read_weights,
)
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.rollouts.rollout_api import RolloutRequest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Name = Annotated[str, typer.Argument(help="the app's name", autocompletion=app_names)]
Reason = Annotated[str, typer.Option("--reason", help="why, for the history and the audit log")]
Meant = Annotated[str, typer.Option("--rollout", help="the id of the one that is meant; of another nothing is done")]
NONE = "'pilotlight rollout start' begins one; 'pilotlight app list' shows what is deployed."


@app.callback()
def group() -> None:
    """Give new versions the traffic by and by."""


@app.command()
@advising(not_found=DEPLOYED)
def start(
    name: Name,
    canary: Annotated[str, typer.Option(help="v8, or a deploy's revision; default: the last without traffic")] = "",
    steps: Annotated[str, typer.Option(help="percent of the traffic, rising")] = STEPS,
    every: Annotated[str, typer.Option(help="the least time at a step: 30s, 10m, 2h")] = EVERY,
    bake: Annotated[str, typer.Option(help="how long the old version stays warm after the last step")] = BAKE,
    calls: Annotated[int, typer.Option(help="compared calls of the new version, at least, at a step", min=0)] = 100,
    sticky: Annotated[str, typer.Option(help="what stays on one side: call, tenant, user, key or header")] = "call",
    cohort_tenant: Annotated[list[str] | None, typer.Option(help="only callers of this tenant; again for more")] = None,
    cohort_header: Annotated[list[str] | None, typer.Option(help="only requests with this: x-name=value")] = None,
    no_twin: Annotated[bool, typer.Option("--no-twin", help="compare with all of the old version")] = False,
    pairs: Annotated[int, typer.Option(help="inputs that both versions run before the ramp; 0: none", min=0)] = 300,
    tolerance: Annotated[str | None, typer.Option(help="how much slower or dearer it may be: 5%")] = None,
    answer_tolerance: Annotated[
        str | None, typer.Option(help="how far numbers in answers of pairs may differ: 1%")
    ] = None,
    weight: Annotated[list[str] | None, typer.Option(help="what a guard counts: cost=4; again for more")] = None,
    guard: Annotated[
        list[str] | None, typer.Option(help="one on answers: bad=event:FIELD, loss=amount:score.loss; again for more")
    ] = None,
    hold_back: Annotated[float, typer.Option(help="percent on the old version until the end", min=0, max=50)] = 5.0,
    on_undecided: Annotated[str, typer.Option(help="at the end without proof: promote, hold, rollback")] = "promote",
    surge: Annotated[int | None, typer.Option(help="further containers while it runs, at most", min=1)] = None,
    gate: Annotated[str, typer.Option(help="a URL that is asked before each step; 2xx is yes")] = "",
    allow_breaking: Annotated[bool, typer.Option("--allow-breaking", help="also if its schemas break callers")] = False,
    skip_judging: Annotated[
        bool, typer.Option("--skip-judging", help="go on whatever the evidence; on record")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="also a version that was rolled back")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="until it is over; exit code 3 unless it is promoted")] = False,
    as_json: Json = False,
) -> None:
    """Start a rollout. What it will and will not see is printed first, at the present traffic.

    \b
    pilotlight rollout start hello --canary v8 --steps 1,5,25,50,100 --every 10m
    pilotlight rollout start hello --cohort-tenant acme --sticky user
    pilotlight rollout start hello --weight cost=4 --guard loss=amount:score.loss
    pilotlight rollout start hello --wait
    """
    request = RolloutRequest(
        canary=canary, steps=read_steps(steps), every_s=read_span(every, "--every"), bake_s=read_span(bake, "--bake"),
        calls=calls, sticky=sticky, cohort_tenants=tuple(cohort_tenant or ()),
        cohort_headers=read_headers(cohort_header or []), twin=not no_twin, pairs=pairs,
        tolerance=read_tolerance(tolerance), answer_tolerance=read_answer_tolerance(answer_tolerance),
        weights=read_weights(weight or []), guards=read_guards(guard or []), hold_back=hold_back,
        on_undecided=on_undecided, surge=surge, gate=gate,
        allow_breaking=allow_breaking, skip_judging=skip_judging, retry=retry,
    )  # fmt: skip
    started = ask(client().rollouts.start_rollout(name, request))
    if not as_json:
        show_started(started)
    if wait:
        last = follow_rollout(name, started.rollout.id)
        if as_json:
            print_json(last)
        check_outcome(last, started.rollout.id)
    elif as_json:
        print_json(started)


@app.command()
@advising(not_found=NONE)
def status(
    name: Name,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="draw it again and again until it is over")] = False,
    every: Annotated[float, typer.Option(help="seconds between drawings with --watch", min=0.1)] = 2.0,
    as_json: Json = False,
) -> None:
    """Show how a rollout is, with its evidence in sentences.

    \b
    pilotlight rollout status hello
    pilotlight rollout status hello --watch
    pilotlight rollout status hello --json | jq .verdict
    """
    if watch:
        follow_rollout(name, every_s=every, show=lambda view: draw(view, as_json=as_json, watched=True))
        return
    draw(ask(client().rollouts.rollout(name)), as_json=as_json, watched=False)


@app.command(name="list")
@advising(not_found=DEPLOYED)
def list_rollouts(
    name: Annotated[
        str, typer.Argument(help="the app's name; default: the last of each app", autocompletion=app_names)
    ] = "",
    of_all: Annotated[bool, typer.Option("--all", help="all tenants', for operators")] = False,
    as_json: Json = False,
) -> None:
    """List an app's rollouts, or the last of each app.

    The newest is first.

    \b
    pilotlight rollout list
    pilotlight rollout list hello
    """
    if not name:
        _list_all(of_all=of_all, as_json=as_json)
        return
    if of_all:
        raise typer.BadParameter("--all lists the rollouts of all tenants: name no app.")
    found = ask(client().rollouts.list_rollouts(name))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["number"],
            one["state"],
            ago(float(one["started_at"])),
            ", ".join(sides["canary"] for sides in one.get("functions", {}).values()),
            one.get("verdict", ""),
            one.get("reason", ""),
        )
        for one in found
    ]
    columns = ("number", "state", "started", "new", "verdict", "reason")
    print_table(columns, rows, empty=f"{name} has had no rollout.", less=("started",))


def _list_all(*, of_all: bool, as_json: bool) -> None:
    found = ask(client().rollouts.list_all_rollouts(of_all=of_all))
    if as_json:
        print_json(found)
        return
    rows = [
        (
            f"{one.tenant}:{one.app}" if of_all else one.app,
            ", ".join(sides["canary"] for sides in one.functions.values()),
            one.state + (f", held ({one.held})" if one.held else ""),
            f"{one.share:g} %",
            f"{one.evidence:.3g}",
            one.verdict,
            ago(one.since),
        )
        for one in found.rollouts
    ]
    print_table(("app", "new", "state", "share", "E", "verdict", "since"), rows, empty="No app has had a rollout.")
    if found.left:
        note(f"{found.left} more ended earlier: 'pilotlight rollout list APP' shows them.")


@app.command()
@advising(not_found=NONE)
def pause(name: Name, reason: Reason = "", rollout: Meant = "", as_json: Json = False) -> None:
    """Stay at the present shares. The judge goes on, and may still roll back.

    \b
    pilotlight rollout pause hello --reason "wait for Monday"
    """
    _send(name, "pause", reason, rollout, as_json=as_json)


@app.command()
@advising(not_found=NONE)
def resume(name: Name, reason: Reason = "", rollout: Meant = "", as_json: Json = False) -> None:
    """Go on after a pause or a freeze.

    \b
    pilotlight rollout resume hello
    """
    _send(name, "resume", reason, rollout, as_json=as_json)


@app.command()
@advising(not_found=NONE)
def promote(name: Name, reason: Reason = "", rollout: Meant = "", as_json: Json = False) -> None:
    """Put the new version into service now, whatever the judge says.

    \b
    pilotlight rollout promote hello --reason "checked by hand"
    """
    _send(name, "promote", reason, rollout, as_json=as_json)


@app.command()
@advising(not_found=NONE)
def abort(name: Name, reason: Reason = "", rollout: Meant = "", as_json: Json = False) -> None:
    """Go back to the old version now; also while paused. The new one is not marked as worse.

    \b
    pilotlight rollout abort hello --reason "wrong weights"
    pilotlight rollout abort hello --rollout "$(pilotlight rollout status hello --json | jq -r .id)"
    """
    _send(name, "abort", reason, rollout, as_json=as_json)


@app.command()
@advising(not_found=NONE)
def freeze(name: Name, reason: Reason = "", rollout: Meant = "", as_json: Json = False) -> None:
    """Leave all as it is, also if the evidence is against it. 'rollout resume' ends that.

    \b
    pilotlight rollout freeze hello --reason "an incident elsewhere"
    """
    _send(name, "freeze", reason, rollout, as_json=as_json)


def _send(name: str, word: str, reason: str, meant: str, *, as_json: bool) -> None:
    view = ask(client().rollouts.send_word(name, word, reason, rollout=meant))
    if as_json:
        print_json(view)
        return
    print_text(f"{view.app}: {headline(view)}")
