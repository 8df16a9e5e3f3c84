"""Shows a rollout to people, and stays with it until it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import typer

from pilotlight.cli.output import console, note, on_terminal, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api.rollouts.rollout_api import GuardView, RolloutView
from pilotlight_core.model.rollouts.rollout_record import WHY_HELD

ROLLED_BACK, INTERRUPTED = 3, 130
"""Exit codes."""
OVER = frozenset({"promoted", "rolled_back", "superseded"})
HAPPENS = {
    "planned": "it begins",
    "checking": "schemas, policies and signatures are looked at",
    "starting": "the new version and its twin get containers; all calls go to the old one",
    "promoted": "all calls go to the new version",
    "rolling_back": "all calls go to the old version; what runs on the new one ends",
    "rolled_back": "all calls go to the old version",
    "superseded": "calls go to what is deployed now",
}
"""By state, where more than its share is to be said."""


def rollout_lines(view: RolloutView, at: float) -> Iterator[str]:
    """What people read of a rollout at the unix second `at`."""
    names = ", ".join(
        f"{sides.get('control', 'new')} -> {sides['canary']}" for _, sides in sorted(view.functions.items())
    )
    yield f"rollout {view.number} of {view.app}: {names}"
    steps = f", step {view.step} of {len(view.steps)}" if view.step else ""
    yield f"  {view.state} for {span(at - view.since)}{steps}{_happens(view)}"
    yield from _standing(view, at)
    yield f"  {view.verdict}: E = {view.evidence:.3g} (holds from 10, rolls back from 100); compared: {_compared(view)}"
    yield from _guard_lines(view)
    for sentence in view.sentences:
        yield f"  {sentence}"
    if view.state not in OVER and view.ready:
        yield "  ready containers: " + ", ".join(f"{count} {side}" for side, count in view.ready.items())


def _compared(view: RolloutView) -> str:
    """Calls by side, and pairs of shadows: before the ramp there are pairs alone."""
    pairs = sum(one.canary for one in view.seen if one.guard == "pairs")
    found = [f"{pairs:,} pairs"] if pairs else []
    found += [f"{count:,} {arm} calls" for arm, count in sorted(view.calls.items())]
    return ", ".join(found) or "nothing yet"


def _happens(view: RolloutView) -> str:
    """What goes on in its state, in words."""
    share = f": {view.share:g} % of the calls go to the new version"
    if view.state == "pairs":
        wanted, seen = view.terms.get("pairs", 0), [one for one in view.seen if one.guard == "pairs"]
        many = f" ({min(one.canary for one in seen):,} of {wanted:,})" if seen and wanted else ""
        return f": both versions run inputs of calls, as shadows{many}; callers have the old one's answers"
    return f": {HAPPENS[view.state]}" if view.state in HAPPENS else share


def _standing(view: RolloutView, at: float) -> Iterator[str]:
    """Why it is where it is, and when it goes on."""
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


def _guard_lines(view: RolloutView) -> Iterator[str]:
    """Each guard's e, the loudest first, with what it has seen; of an older gateway its e alone."""
    several = len({one.function for one in view.seen}) > 1
    for one in view.seen:
        name = f"{one.function}.{one.guard}" if several else one.guard
        proof = f"; proven not to be {one.proven:.0%} worse" if one.proven is not None else ""
        unweighed = "" if one.weight else "; shown, and not counted"
        yield f"    {name:<10} {one.evidence:>9.3g}  {one.about}: {seen_text(one)}{proof}{unweighed}"
    if view.seen:
        return
    for guard, e in sorted(view.guards.items(), key=lambda each: -each[1]):
        within = view.verified_within.get(guard)
        proof = f"   not more than {within:.0%} worse" if within is not None else ""
        yield f"    {guard:<10} {e:>9.3g}{proof}"


def seen_text(one: GuardView) -> str:
    """What a guard has counted on both sides, and the effect that follows."""
    if one.canary_of is not None and one.other_of is not None:
        return f"{one.canary:,} of {one.canary_of:,} new, {one.other:,} of {one.other_of:,} old"
    if one.effect is None:
        return "nothing yet"
    sure = f" ({one.low:+.1%} to {one.high:+.1%})" if one.low is not None and one.high is not None else ""
    counted = f"{one.canary:,}" if one.guard == "pairs" else f"{one.canary:,} new, {one.other:,} old"
    return f"{one.effect:+.1%}{sure}, by {counted}"


def plan_line(view: RolloutView) -> str:
    """What a rollout that has just begun is to do."""
    pairs, every, bake = (view.terms.get(name, 0) for name in ("pairs", "every_s", "bake_s"))
    first = f"{pairs:,} pairs of shadows where they may be made, " if pairs else ""
    steps = ", ".join(f"{step:g}" for step in view.steps)
    return f"{first}{steps} % of the calls, {span(every)} or more at each step, {span(bake)} of baking"


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
