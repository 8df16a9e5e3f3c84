"""Shows a rollout to people, and stays with it until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import typer

from pilotlight.cli.output import console, note, on_terminal, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api.rollouts.rollout_api import RolloutView
from pilotlight_core.model.rollouts.rollout_record import WHY_HELD

ROLLED_BACK, INTERRUPTED = 3, 130
"""Exit codes."""
OVER = frozenset({"promoted", "rolled_back", "superseded"})


def rollout_lines(view: RolloutView, at: float) -> Iterator[str]:
    """What people read of a rollout at the unix second `at`."""
    names = ", ".join(
        f"{sides.get('control', 'new')} -> {sides['canary']}" for _, sides in sorted(view.functions.items())
    )
    yield f"rollout {view.number} of {view.app}: {names}"
    steps = f"step {view.step} of {len(view.steps)}, " if view.step else ""
    share = f"{view.share:g} % of the calls go to the new version"
    yield f"  {view.state} for {span(at - view.since)}: {steps}{share}"
    if view.state in OVER and view.reason:
        yield f"  because: {view.reason}"
    if view.paused_by:
        yield f"  paused by {view.paused_by}: 'pilotlight rollout resume {view.app}' goes on"
    if view.held:
        yield f"  held ({view.held}): {WHY_HELD.get(view.held, view.held)}"
    if view.next_at > at:
        yield f"  the next step: in {span(view.next_at - at)} at the earliest"
    if view.frozen:
        yield "  frozen: the judge neither goes on nor rolls back"
    counted = ", ".join(f"{count} {arm}" for arm, count in sorted(view.calls.items())) or "none yet"
    yield f"  {view.verdict}: E = {view.evidence:.3g} (holds from 10, rolls back from 100); calls compared: {counted}"
    for guard, e in sorted(view.guards.items(), key=lambda one: -one[1]):
        within = view.verified_within.get(guard)
        proof = f"   not more than {within:.0%} worse" if within is not None else ""
        yield f"    {guard:<10} {e:>10.3g}{proof}"
    for sentence in view.sentences:
        yield f"  {sentence}"
    if view.state not in OVER and view.ready:
        yield "  ready containers: " + ", ".join(f"{count} {side}" for side, count in view.ready.items())


def headline(view: RolloutView) -> str:
    """What changes of it from one look to the next, in a line."""
    held = f", held ({view.held})" if view.held else ""
    paused = ", paused" if view.paused_by else ""
    step = f" step {view.step}/{len(view.steps)}" if view.step else ""
    return f"{view.state}{step}, {view.share:g} %{held}{paused}, {view.verdict}, E = {view.evidence:.3g}"


def follow_rollout(
    app: str, rollout: str = "", *, every_s: float = 1.0, show: Callable[[RolloutView], None] | None = None
) -> RolloutView:
    """Stay until a rollout is over; the last look at it. Ctrl-C leaves it running, and says so.

    `rollout`: its id; "": whichever is under way now.
    """
    told = show or _noting()
    try:
        while True:
            view = ask(client().rollouts.rollout(app))
            rollout = rollout or view.id
            told(view)
            if view.state in OVER or view.id != rollout:
                return view
            time.sleep(every_s)
    except KeyboardInterrupt:
        note(
            f"The rollout of {app} goes on without you: 'pilotlight rollout status {app}' shows it, "
            f"'pilotlight rollout abort {app}' ends it."
        )
        raise typer.Exit(INTERRUPTED) from None


def draw(view: RolloutView, *, as_json: bool, watched: bool) -> None:
    """Print a rollout; on a terminal that is watched, over what was there."""
    if as_json:
        print_json(view, indent=not watched)
        return
    if watched and on_terminal():
        console().clear()
    for line in rollout_lines(view, time.time()):
        print_text(line)


def check_outcome(view: RolloutView, rollout: str) -> None:
    """Exit with code 3, and the reason, if a rollout did not end as promoted."""
    if view.id == rollout and view.state == "promoted":
        note(f"Promoted: {view.reason}.")
        return
    if view.id != rollout:
        note(f"Another rollout of {view.app} has begun since: 'pilotlight rollout list {view.app}' shows how it ended.")
    else:
        note(f"{view.state.replace('_', ' ').capitalize()}: {view.reason}")
        for sentence in view.sentences:
            note(f"  {sentence}")
    raise typer.Exit(ROLLED_BACK)


def _noting() -> Callable[[RolloutView], None]:
    """Notes each change in a line."""
    last = ""

    def show(view: RolloutView) -> None:
        nonlocal last
        line = headline(view)
        if line != last:
            note(line)
            last = line

    return show
