"""The order of the search: a tier's candidates have equal preference and spread, a run's equal residency and cost."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final, NamedTuple

from pilotlight_core.model.placing import Over
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers, PreferenceOffers
from pilotlight_placement.search.candidate import Candidate
from pilotlight_placement.search.index_search import by_index
from pilotlight_placement.search.node_search import SearchScope, on_nodes
from pilotlight_placement.search.residency import nodes_with_some
from pilotlight_placement.search.short_hosts import short_now

CandidateRun = Iterator[Candidate]
NONE_BLOCKED: Final[frozenset[int]] = frozenset()


class PreferenceTier(NamedTuple):
    """Candidates with equal preference and spread. `only` are the only nodes, by rank; None: any."""

    choice: PreferenceOffers
    within: SearchScope
    only: tuple[int, ...] | None = None


def blocked_nodes(fleet: Fleet, ask: Ask) -> Set[int]:
    """The nodes that have too little host memory or too few cores left for an ask, or that `avoided_nodes` has."""
    short, avoided = short_now(fleet, ask), avoided_nodes(fleet, ask)
    return short.memory.union(short.cpu, avoided) if short.memory or short.cpu or avoided else NONE_BLOCKED


def avoided_nodes(fleet: Fleet, ask: Ask) -> set[int]:
    """The nodes, by rank, that run a function that an ask avoids, or one that avoids the ask's."""
    found = set(fleet.nodes_avoiding(ask.function))
    for function in ask.avoid:
        found.update(fleet.nodes_of(function))
    return found


def tiers(fleet: Fleet, ask: Ask, offers: Offers) -> Iterator[PreferenceTier]:
    """The tiers of an ask, best first, without what the filters about nodes and zones exclude."""
    blocked = blocked_nodes(fleet, ask)
    for choice in offers.choices:
        anywhere = PreferenceTier(choice, SearchScope(None, blocked))
        if ask.spread is None:
            yield anywhere
        elif ask.spread.over is Over.ZONE:
            yield from _by_zone(fleet, ask, anywhere)
        else:
            yield from _by_node(fleet, ask, anywhere)


def _by_zone(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[PreferenceTier]:
    zones = tier.choice.zones
    counts = fleet.zones(ask.function)
    most = ask.spread.most if ask.spread else None
    for count in sorted({counts.get(zone, 0) for zone in zones}):
        if most is None or count < most:
            alike = frozenset(zone for zone in zones if counts.get(zone, 0) == count)
            yield PreferenceTier(tier.choice, SearchScope(alike, tier.within.blocked))


def _by_node(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[PreferenceTier]:
    counts = fleet.nodes_of(ask.function)
    most = ask.spread.most if ask.spread else None
    yield PreferenceTier(tier.choice, SearchScope(None, tier.within.blocked | counts.keys()))
    for count in sorted(set(counts.values())):
        if most is None or count < most:
            only = tuple(sorted(rank for rank, there in counts.items() if there == count))
            yield PreferenceTier(tier.choice, tier.within, only)


def runs(fleet: Fleet, ask: Ask, tier: PreferenceTier) -> Iterator[CandidateRun]:
    """The tier's candidates, best first: on nodes that have most of what the ask loads, on those without any last."""
    on_certain_nodes = nodes_with_some(fleet, ask) if ask.resident else []
    warm = frozenset([rank for ranks in on_certain_nodes for rank in ranks])
    within = tier.within
    if tier.only is not None:
        only = frozenset(tier.only)
        on_certain_nodes = [[rank for rank in ranks if rank in only] for ranks in on_certain_nodes]
        on_certain_nodes.append([rank for rank in tier.only if rank not in warm])
    for ranks in on_certain_nodes:
        if ranks:
            yield from on_nodes(tier.choice.by_group, ask, [fleet.by_rank[rank] for rank in ranks], within)
    if tier.only is None:
        elsewhere = SearchScope(within.zones, warm | frozenset(within.blocked)) if warm else within
        yield from by_index(tier.choice.levels, ask, fleet.by_rank, elsewhere)
