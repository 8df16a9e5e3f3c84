"""`pilotlight scale`."""

from __future__ import annotations

import time
from typing import Annotated

import typer
from msgspec import UNSET

from pilotlight.cli.advice import advising
from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.completions import scalable_names
from pilotlight.cli.local_times import read_instant, show_instant
from pilotlight.cli.output import print_json, print_text
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight_core.model.api.autoscaler_api import AutoscalerInfo, AutoscalerRequest, ScaleBoundInfo, WarmInfo

app = command_app()
COLUMNS = ("bound", "value", "deployed", "because", "until")


@app.command()
@advising(unknown_function="'pilotlight app list' shows what is deployed; a name is app.function, without a version.")
def scale(
    function: Annotated[str, typer.Argument(help="app.function", autocompletion=scalable_names)],
    least: Annotated[int | None, typer.Option("--min", help="containers that stay without calls", min=0)] = None,
    most: Annotated[int | None, typer.Option("--max", help="containers at most", min=1)] = None,
    buffer: Annotated[int | None, typer.Option(help="containers beyond the busy ones", min=0)] = None,
    window: Annotated[
        float | None,
        typer.Option("--scaledown-window", help="seconds without calls after which a container ends", min=0),
    ] = None,
    zero_window: Annotated[
        float | None, typer.Option("--zero-window", help="the same of the last container", min=0)
    ] = None,
    forecast: Annotated[
        bool | None, typer.Option(help="whether what its past foretells may keep or start containers")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="when it ends: 18:00 (the next), '2026-11-24 18:00'; of this machine's zone")
    ] = None,
    for_: Annotated[str | None, typer.Option("--for", help="how long it holds: 90s, 15m, 2h, 3d")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="end all that was said: what is deployed holds again")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON; times are unix seconds")] = False,
) -> None:
    """Say how many containers a function has, without a deploy.

    Without options, what holds now is shown. What is said holds within a second, for all of the function's versions,
    until it ends or is reset; deploys do not end it. What is not named stays as it is. It goes before warm windows and
    before what the code says.

    \b
    pilotlight scale llm.chat
    pilotlight scale llm.chat --min 2 --max 20 --until 18:00
    pilotlight scale llm.chat --min 0 --no-forecast --for 2h
    pilotlight scale llm.chat --reset
    """
    bounds = {
        "--min": least, "--max": most, "--buffer": buffer, "--scaledown-window": window, "--zero-window": zero_window,
        "--forecast": forecast,
    }  # fmt: skip
    is_said = any(value is not None for value in bounds.values())
    if until is not None and for_ is not None:
        raise typer.BadParameter("--until and --for are one question: give one of them.")
    if reset and (is_said or until is not None or for_ is not None):
        raise typer.BadParameter("--reset ends all that was said: give nothing beside it.")
    if (until is not None or for_ is not None) and not is_said:
        raise typer.BadParameter(f"say what ends then: {', '.join(bounds)}.")
    if reset:
        found = ask(client().autoscaler.reset_bounds(function))
    elif is_said:
        asked = AutoscalerRequest(
            min_containers=UNSET if least is None else least,
            max_containers=UNSET if most is None else most,
            buffer_containers=UNSET if buffer is None else buffer,
            scaledown_window=UNSET if window is None else window,
            zero_window=UNSET if zero_window is None else zero_window,
            forecast=UNSET if forecast is None else forecast,
            ends_at=None if until is None else read_instant(until, "--until", time.time()),
            ends_in_s=None if for_ is None else read_span(for_, "--for"),
        )
        found = ask(client().autoscaler.change_bounds(function, asked))
    else:
        found = ask(client().autoscaler.get_bounds(function))
    if as_json:
        print_json(found)
    else:
        _show(found)


def _show(found: AutoscalerInfo) -> None:
    bounds = {
        "min": found.min_containers,
        "max": found.max_containers,
        "buffer": found.buffer_containers,
        "scaledown-window": found.scaledown_window,
        "zero-window": found.zero_window,
        "forecast": found.forecast,
    }
    rows = [_row(name, bound) for name, bound in bounds.items()]
    print_table(COLUMNS, rows, empty="", right=("value", "deployed"), less=("deployed",))
    for window in found.warm:
        print_text(_warm_text(window))


def _row(name: str, bound: ScaleBoundInfo) -> tuple[str, ...]:
    until = "" if bound.ends_at is None else show_instant(bound.ends_at)
    return name, _value_text(name, bound.value), _value_text(name, bound.deployed), bound.because, until


def _value_text(name: str, value: float | bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g} s" if name.endswith("window") else f"{value:g}"


def _warm_text(window: WarmInfo) -> str:
    turn = ""
    if window.changes_at is not None:
        turn = f", {'closes' if window.open else 'opens'} {show_instant(window.changes_at)}"
    state = "open" if window.open else "not open"
    kept = "1 container" if window.containers == 1 else f"{window.containers} containers"
    return f"Warm window {window.when} {window.tz}: {kept}, {state}{turn}."
