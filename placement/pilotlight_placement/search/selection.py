"""The choice: the best candidate for an ask by the policy's steps, and the best loser of each step.

A later tier or run loses to an earlier one at the step that separates them, so the first candidate wins, and the search
ends as soon as each step has its best loser.
"""

from __future__ import annotations

from typing import NamedTuple

from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers
from pilotlight_placement.search.candidate import Candidate
from pilotlight_placement.search.decision_record import Value
from pilotlight_placement.search.policy import STEP_NAMES, first_difference, keys_for, value_of
from pilotlight_placement.search.residency import lacked_by_most
from pilotlight_placement.search.tiers import runs, tiers

TIER_STEPS = ("preference", "spread")
RUN_STEPS = ("resident", "cost", "parked")
CANDIDATE_STEPS = ("fragmentation", "fit", "start", "cut", "blank", "order")
"""Decided by the order of candidates in a run, which is that of `Candidate`."""
LAST_OF_TIER = frozenset({*TIER_STEPS, "resident"})
"""A loss at one of these steps ends a tier: later candidates lose at it too, or at an earlier one."""
LAST_OF_RUN = LAST_OF_TIER | {"cost", "parked", "fragmentation"}

if (*TIER_STEPS, *RUN_STEPS, *CANDIDATE_STEPS) != STEP_NAMES:
    raise RuntimeError(f"the search decides in another order than the policy: {STEP_NAMES}")


class RankedCandidate(NamedTuple):
    value: Value
    candidate: Candidate


class Selection(NamedTuple):
    """The winner (None if there is no candidate), and the best loser of each deciding step."""

    winner: RankedCandidate | None
    rivals: dict[str, RankedCandidate]


def first_candidate(fleet: Fleet, ask: Ask, offers: Offers) -> RankedCandidate | None:
    """The winner of `choose_candidate` alone: the first candidate that there is."""
    keys = keys_for(fleet, ask)
    for tier in tiers(fleet, ask, offers):
        for run in runs(fleet, ask, tier):
            for candidate in run:
                return RankedCandidate(value_of(keys, candidate), candidate)
    return None


def choose_candidate(fleet: Fleet, ask: Ask, offers: Offers) -> Selection:
    """The smallest candidate by `policy.value_of` among those that pass the filters."""
    winner: RankedCandidate | None = None
    rivals: dict[str, RankedCandidate] = {}
    keys, last = keys_for(fleet, ask), lacked_by_most(ask)
    for tier in tiers(fleet, ask, offers):
        if winner is not None and "spread" in rivals and tier.choice.number == winner.value.preference:
            continue
        for run in runs(fleet, ask, tier):
            step = ""
            for candidate in run:
                value = value_of(keys, candidate)
                if winner is None:
                    winner = RankedCandidate(value, candidate)
                    continue
                step = first_difference(winner.value, value)
                if step not in rivals:
                    rivals[step] = RankedCandidate(value, candidate)
                if step in LAST_OF_RUN:
                    break
            # Nodes that have nothing of what it loads come last: after a winner there none loses at "resident".
            is_last = step == "cost" and winner is not None and winner.value.resident == last
            if step in LAST_OF_TIER or is_last:
                break
        if "preference" in rivals:
            break
    return Selection(winner, rivals)
