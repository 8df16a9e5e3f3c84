"""`pilotlight diagnose`: what bounds functions, what to do about it, and what will be different then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import typer

from pilotlight.cli.advice import DEPLOYED, advising
from pilotlight.cli.arguments import read_ref, read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.cure_trial import LONGEST_S, SHORTEST_S, Clock, TrialReport, try_cure
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.printable import unheard_text
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import BadInput
from pilotlight_core.model.api.seeing.diagnosis_api import (
    CauseInfo,
    CureInfo,
    DiagnosisList,
    FunctionDiagnosis,
    PromiseInfo,
)

app = command_app()
WINDOW = re.compile(r"[0-9]{1,4}[mh]")
COSTS = {
    "caller": "the caller's code", "setting": "a setting", "gpu_time": "a setting that costs time of devices",
    "version": "a new version", "moves": "containers move", "hardware": "hardware",
}  # fmt: skip
METRICS = {
    "p95_ms": ("95 of 100 calls take", "ms"), "mean_ms": ("calls take on average", "ms"),
    "slowed_mean_ms": ("the calls that are slowed down take on average", "ms"),
    "rate": ("calls that end well", "/s"), "loop_part": ("the gateway's thread is busy", "%"),
    "link_part": ("the link is busy", "%"), "gpu_ms_per_call": ("a call takes of a device", "ms"),
    "start_part": ("starts are of the time of calls", "%"), "limited_part": ("calls refused by limits", "%"),
    "full_part": ("calls without room", "%"), "failing_part": ("calls that fail with their container", "%"),
    "failed_starts": ("starts that fail", ""), "idle_ends": ("containers that end for want of work", ""),
    "died": ("containers that die", ""), "tokens_per_s": ("tokens", "/s"),
    "first_token_ms": ("95 of 100 first tokens come within", "ms"),
    "gap_ms": ("95 of 100 next tokens come within", "ms"),
}  # fmt: skip


@app.command()
@advising(not_found=DEPLOYED, unknown_function=DEPLOYED)
def diagnose(
    function: Annotated[
        str | None, typer.Argument(help="app.function; of a class, app.Class; without it, a sentence for each")
    ] = None,
    window: Annotated[str, typer.Option(help="how long back, 1m to 1h")] = "10m",
    rate: Annotated[
        float | None, typer.Option(help="calls per second that are wanted, if that is more than there are", min=0)
    ] = None,
    tries: Annotated[
        bool, typer.Option("--try", help="do the first thing for a while, and say whether its promise is kept")
    ] = False,
    for_: Annotated[str, typer.Option("--for", help="how long it is tried, 3m to 1h")] = "5m",
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say what bounds a function, and what to do about it.

    First whether what was counted adds up, then what is wrong, which cause explains it and by which numbers. What to do
    is listed with the cheapest first, and with what will be different then: if it is not, the diagnosis was wrong.
    With --try the first of it is done for a while and taken back, if it is a setting of 'pilotlight scale': the exit
    code is 0 if what was promised came, else 1.

    \b
    pilotlight diagnose
    pilotlight diagnose search.embed
    pilotlight diagnose search.embed --window 30m
    pilotlight diagnose search.embed --rate 500 --json
    pilotlight diagnose search.embed --try --for 10m
    """
    if not WINDOW.fullmatch(window):
        raise BadInput(f"--window {window!r}: expected a time such as 10m, at most 1h.", field="window")
    if function is None:
        if rate is not None or tries:
            raise typer.BadParameter("--rate and --try are of one function: name it.")
        found = ask(client().platform.list_diagnoses(window))
        if as_json:
            print_json(found)
        else:
            _show_all(found, window)
        return
    ref, _ = read_ref(function, None)
    tried_s = read_span(for_, "--for")
    if tries and not SHORTEST_S <= tried_s <= LONGEST_S:
        raise BadInput(f"--for {for_}: expected 3m to 1h.", field="for")
    one = ask(client().platform.diagnose_function(str(ref), window, rate))
    if tries:
        _show_trial(try_cure(str(ref), one, tried_s, rate, Clock()), as_json=as_json)
    elif as_json:
        print_json(one)
    else:
        _show(one)


def _show_trial(report: TrialReport, *, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        for line in trial_lines(report):
            print_text(line)
    if not report.kept:
        raise typer.Exit(1)


def trial_lines(report: TrialReport) -> Iterator[str]:
    """What a trial has shown."""
    yield f"Tried: {report.cure.what}, measured over {report.measured_min} min and {report.calls} calls, taken back."
    words = {True: "kept", False: "broken", None: "not seen"}
    for each in report.promises:
        what, unit = METRICS.get(each.promise.metric, (each.promise.metric, ""))
        most = "at most " if each.promise.at_most else "about "
        now = _amount(each.after, unit) if each.after is not None else "-"
        before = f", before {_amount(each.before, unit)}" if each.before is not None else ""
        yield f"  {what}: {now} (promised {most}{_amount(each.promise.value, unit)}{before}): {words[each.kept]}"
    yield {
        True: f"What was promised has come: the cause is {report.cause}.",
        False: "A promise was broken: the diagnosis was wrong, or something else has changed. Ask again.",
        None: "Too little was seen to say: try it with more calls, or for longer.",
    }[report.kept]


def _show_all(found: DiagnosisList, window: str) -> None:
    for line in found.functions:
        first = f" First: {line.first_cure}." if line.first_cure else ""
        print_text(f"{line.function}: {line.sentence}{first}")
    if not found.functions:
        note(f"No function had calls in the last {window}.")
    if found.left:
        note(f"{found.left} functions with fewer calls are left out.")


def _show(found: FunctionDiagnosis) -> None:
    print_text(found.sentence)
    for line in found.evidence:
        print_text(f"  {line}")
    if found.cures:
        print_text(f"To do, the cheapest first (confidence {found.confidence:.0%}):")
        _show_cures(found.cures)
    if found.promises:
        print_text("If that is right, then after the first one:")
        for promise in found.promises:
            print_text(f"  {promise_text(promise, found.metrics.get(promise.metric))}")
    if found.headroom is not None and found.headroom < 1_000:
        print_text(f"There is room for {found.headroom:.1f} times as much.")
    if found.next is not None:
        print_text(f"Then: {found.next.sentence}")
    for other in found.others:
        _show_other(other)
    if found.silent:
        note(f"Gateways that did not answer, whose part is missing: {unheard_text(found.silent)}.")


def _show_cures(cures: tuple[CureInfo, ...]) -> None:
    for number, cure in enumerate(cures, 1):
        print_text(f"  {number}. {cure.what} ({COSTS.get(cure.cost, cure.cost)})")
        if cure.command:
            print_text(f"     {cure.command}")


def _show_other(other: CauseInfo) -> None:
    print_text(f"Besides: {other.sentence}")
    _show_cures(other.cures[:1])


def promise_text(promise: PromiseInfo, now: float | None) -> str:
    """What will be different, beside what is now."""
    what, unit = METRICS.get(promise.metric, (promise.metric, ""))
    before = f" (now {_amount(now, unit)})" if now is not None else ""
    most = "at most " if promise.at_most else "about "
    return f"{what}: {most}{_amount(promise.value, unit)}{before}"


def _amount(value: float, unit: str) -> str:
    if unit == "%":
        return f"{value:.0%}"
    return f"{value:.3g} {unit}".rstrip() if unit == "ms" else f"{value:.3g}{unit}"
