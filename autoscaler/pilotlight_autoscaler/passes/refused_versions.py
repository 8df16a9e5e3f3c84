"""What a pass remembers of the versions for which it found no place."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.reclaim import SIBLING_WAITED_S, is_batch, waited_s
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.plan import Shortfall


def note_refused(
    state: PassState,
    blocked: Sequence[Shortfall],
    asks: Mapping[Ask, list[str]],
    rooms: Container[Ask],
    *,
    is_certain: bool,
) -> None:
    """Remember who has no place; if that `is_certain`, also those that ask for no less, and may have no more.

    Room by moves was looked for only for `rooms`.
    """
    refusals = state.world.refusals
    for short in blocked:
        ask = short.refusal.record.ask
        refusals.note(asks[ask], state.at, room=ask in rooms, ask=ask)
    if not is_certain:
        return
    asked = {version: short.refusal.record.ask for short in blocked for version in asks[short.refusal.record.ask]}
    for version, ask in asked.items():
        if may_have_most(state, version):
            refusals.note_alike(version, state.at, room=ask in rooms)


def may_have_most(state: PassState, version: str) -> bool:
    """Whether a version may take from others whatever any version of its tenant may."""
    view = state.views[version]
    return not view.size and not is_batch(view) and waited_s(view) >= SIBLING_WAITED_S
