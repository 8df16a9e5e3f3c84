"""The decision for one container: `place(fleet, ask) -> Placement | NoFit`.

`Fleet.offers` finds the devices that would serve the ask, `choose_candidate` the best free place, `filter_counts` what
the filters exclude, and `no_fit` words the refusal if there is no place.
"""

from __future__ import annotations

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.search.candidate import slice_of
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit, Placement, Rival
from pilotlight_placement.search.filter_counts import filter_counts
from pilotlight_placement.search.policy import STEP_NAMES
from pilotlight_placement.search.refusal import no_fit
from pilotlight_placement.search.selection import RankedCandidate, choose_candidate, first_candidate


def place(fleet: Fleet, ask: Ask, *, explain: bool = True) -> Placement | NoFit:
    """The best place for one container by the policy, or a refusal. The fleet is unchanged.

    Args:
        explain: whether the record of a place has what lost to it, and what the filters excluded.
    """
    if not explain and (found := first_place(fleet, ask)) is not None:
        return found
    offers = fleet.offers(ask)
    winner, rivals = choose_candidate(fleet, ask, offers)
    refused, considered = filter_counts(fleet, ask, offers)
    record = DecisionRecord(
        ask=ask,
        revision=fleet.standing,
        value=winner.value if winner else None,
        rivals=tuple(
            [
                Rival(step=step, slice=slice_of(fleet, rivals[step].candidate), value=rivals[step].value)
                for step in STEP_NAMES
                if step in rivals
            ]
        ),
        refused=refused,
        considered=considered,
        trail=fleet.trail,
        mix=fleet.device_groups.mix,
    )
    if winner is None:
        return no_fit(fleet, ask, offers, record)
    return Placement(slice=slice_of(fleet, winner.candidate), record=record)


def first_place(fleet: Fleet, ask: Ask) -> Placement | None:
    """The same place without what lost to it, or None: for who tries many, and asks of none why there is no place."""
    first = first_candidate(fleet, ask, fleet.offers(ask))
    if first is None:
        return None
    return Placement(slice=slice_of(fleet, first.candidate), record=_bare_record(fleet, ask, first))


def has_place(fleet: Fleet, ask: Ask) -> bool:
    """Whether there is one."""
    return first_candidate(fleet, ask, fleet.offers(ask)) is not None


def _bare_record(fleet: Fleet, ask: Ask, winner: RankedCandidate) -> DecisionRecord:
    return DecisionRecord(ask=ask, revision=fleet.standing, value=winner.value)
