"""A good plan without a solver: devices are bought one by one, then a few are removed again.

1. A unit of a function's throughput is worth its cost on the best slice for it. Among all devices in all full layouts,
   the one is bought whose slices cover most worth for its price, until all is covered (Chvátal's greedy rule, 1979).
2. While it helps, a few of the emptiest devices are replaced by one fewer: their functions get back what they lose from
   any instances that fit into what is free (ruin and recreate, Schrimpf et al. 2000).

A slice's cost as part of a device depends on the rest of the plan, so this is repeated for many weightings (by memory
slices, by compute slices, between them, with seeded noise), and the cheapest result is the plan.

The bound is fractional: no rate costs less than at its best throughput per memory or compute slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from pilotlight_placement.capacity_planner.capacity_plan import (
    TOLERANCE,
    CapacityPlan,
    FunctionDemand,
    InstanceChoice,
    InstanceGroup,
    PlanningTerms,
)
from pilotlight_placement.capacity_planner.greedy_offers import FilledOffer, Gains, filled, offers_of
from pilotlight_placement.capacity_planner.mig_layouts import PartialDevice

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The weight of compute slices in a slice's cost; the rest is that of memory slices."""
OPINIONS = 40
"""Number of weightings; those beyond WEIGHTS have random surcharges on slices."""
DEARER = 0.5
LARGE = 64
"""From so many devices on none is removed, and only WEIGHTS are tried, since one more device is little."""
RUINS = ((1, 64), (2, 16), (3, 8))
"""How many devices are removed together, among how many of the emptiest."""

ChoiceCounts = dict[str, Counter[InstanceChoice]]
"""By function: the number of instances of each kind."""
DemandCosts = dict[tuple[str, str], float]
"""Dollars per hour of a slice, by device and slice."""


@dataclass(kw_only=True)
class GreedyPlan:
    counts: ChoiceCounts
    cards: list[PartialDevice]

    @property
    def cost(self) -> float:
        whole = sum(c.price * c.devices * many for mine in self.counts.values() for c, many in mine.items())
        return whole + sum(card.price for card in self.cards)


def plan_greedily(demands: Sequence[FunctionDemand], terms: PlanningTerms) -> CapacityPlan:
    """A legal plan, mostly within a device of the cheapest."""
    bound = fraction_bound(demands)
    best: GreedyPlan | None = None
    for number, costs in enumerate(_opinions(demands), 1):
        draft = _draft(demands, costs)
        if best is None or draft.cost < best.cost:
            best = draft
        if best.cost <= bound or (len(best.cards) >= LARGE and number >= len(WEIGHTS)):
            break
    groups = [
        InstanceGroup(function=function, choice=choice, count=count)
        for function, mine in (best.counts if best else {}).items()
        for choice, count in mine.items()
        if count
    ]
    return CapacityPlan(
        demands=tuple(demands),
        groups=tuple(groups),
        cuttings=tuple(card.cutting() for card in (best.cards if best else ())),
        bound=bound,
        method="greedy",
        terms=terms,
    )


def _opinions(demands: Sequence[FunctionDemand]) -> Iterator[DemandCosts]:
    slices = {(c.device.name, c.slice): c for demand in demands for c in demand.choices}
    dice = Random(len(slices))
    for number in range(OPINIONS):
        weight = WEIGHTS[number] if number < len(WEIGHTS) else dice.random()
        dearer = 0.0 if number < len(WEIGHTS) else DEARER
        yield {
            key: c.price * (weight * c.parts[1] + (1 - weight) * c.parts[0]) * (1 + dearer * dice.random())
            for key, c in sorted(slices.items(), key=lambda item: item[0])
        }


def _draft(demands: Sequence[FunctionDemand], costs: DemandCosts) -> GreedyPlan:
    draft = GreedyPlan(counts={demand.need.function: Counter() for demand in demands}, cards=[])
    worth = {demand.need.function: min(_rate(c, costs) for c in demand.choices) for demand in demands}
    rest = {demand.need.function: demand.capacity * (1 - TOLERANCE) for demand in demands}
    offers = list(offers_of(demands))
    gains = Gains(offers, rest, worth)
    while rest:
        bought = max((filled(offer, gains, rest, worth) for offer in offers), key=lambda bought: bought.value)
        _buy(bought, draft, rest)
        for function in set(bought.owners) - {""}:
            gains.change(function, rest.get(function, 0.0))
    for demand in demands:
        _add_least(demand, draft, costs)
    while len(draft.cards) < LARGE and _give_up_one(demands, draft, costs):
        pass
    return draft


def _rate(choice: InstanceChoice, costs: DemandCosts) -> float:
    return costs[choice.device.name, choice.slice] / choice.point.throughput


def _buy(bought: FilledOffer, draft: GreedyPlan, rest: dict[str, float]) -> None:
    offer = bought.offer
    held = [(index, owner) for index, owner in enumerate(bought.owners) if owner]
    used = dict.fromkeys((owner for _, owner in held), 0.0)
    for index, owner in held:
        used[owner] += offer.served[owner, offer.slices[index]].point.throughput
    times = max(1, min(int(rest[owner] / throughput) for owner, throughput in used.items()))
    for index, owner in held:
        draft.counts[owner][offer.served[owner, offer.slices[index]]] += times
    if offer.layout:
        for _ in range(times):
            card = PartialDevice(device=offer.choice.device, price=offer.choice.price)
            for index, owner in held:
                card.put(offer.layout[index], owner)
            draft.cards.append(card)
    for owner, throughput in used.items():
        rest[owner] -= times * throughput
        if rest[owner] <= 0:
            del rest[owner]


def _add_least(demand: FunctionDemand, draft: GreedyPlan, costs: DemandCosts) -> None:
    has = draft.counts[demand.need.function]
    while has.total() < demand.need.least:
        cheap = min(demand.choices, key=lambda c: (costs[c.device.name, c.slice], -c.point.throughput))
        fits = sorted((c for c in demand.choices if not c.is_whole), key=lambda c: costs[c.device.name, c.slice])
        taken = next((choice for choice in fits if _put(choice, demand.need.function, draft.cards)), None)
        if taken is None and not cheap.is_whole:
            draft.cards.append(PartialDevice(device=cheap.device, price=cheap.price))
            _put(cheap, demand.need.function, draft.cards[-1:])
        has[taken or cheap] += 1


def missing(demand: FunctionDemand, has: Counter[InstanceChoice]) -> float:
    """Throughput that a demand lacks; not above 0 if it is covered."""
    return demand.capacity * (1 - TOLERANCE) - sum(c.point.throughput * count for c, count in has.items())


def _give_up_one(demands: Sequence[FunctionDemand], draft: GreedyPlan, costs: DemandCosts) -> bool:
    ranked = sorted(draft.cards, key=lambda card: (card.fill, len(card.held)))
    for many, among in RUINS:
        for ruin in combinations(ranked[:among], many):
            if len({card.device.name for card in ruin}) == 1 and _without(demands, draft, ruin, costs):
                return True
    return False


def _without(
    demands: Sequence[FunctionDemand], draft: GreedyPlan, ruin: Sequence[PartialDevice], costs: DemandCosts
) -> bool:
    """Try to do with one device fewer by removing these; if that fails, nothing changes."""
    cards = [card.copy() for card in draft.cards if not any(card is gone for gone in ruin)]
    cards += [PartialDevice(device=ruin[0].device, price=ruin[0].price) for _ in ruin[1:]]
    lost = Counter((function, instance.profile) for card in ruin for instance, function in card.held)
    left: list[tuple[FunctionDemand, Counter[InstanceChoice]]] = []
    for demand in demands:
        function = demand.need.function
        mine = {key: count for (owner, key), count in lost.items() if owner == function}
        if mine:
            has = draft.counts[function].copy()
            has.subtract({c: mine.get(c.slice, 0) for c in has if c.device is ruin[0].device})
            left.append((demand, has))
    # The hardest first: those that lack most of a device.
    left.sort(key=lambda item: -missing(*item) * min(c.cost / c.point.throughput for c in item[0].choices))
    if not all(_recover(demand, has, cards, costs) for demand, has in left):
        return False
    draft.counts.update({demand.need.function: has for demand, has in left})
    draft.cards = [card for card in cards if card.held]
    return True


def _recover(
    demand: FunctionDemand, has: Counter[InstanceChoice], cards: Sequence[PartialDevice], costs: DemandCosts
) -> bool:
    """Add instances where they fit until the demand is covered: the cheapest sufficient one, else the best by cost."""
    slices = [choice for choice in demand.choices if not choice.is_whole]

    def cost(choice: InstanceChoice) -> float:
        return costs[choice.device.name, choice.slice]

    while (rest := missing(demand, has)) > 0 or has.total() < demand.need.least:
        enough = sorted((c for c in slices if c.point.throughput >= rest), key=cost)
        short = sorted((c for c in slices if c.point.throughput < rest), key=lambda c: cost(c) / c.point.throughput)
        taken = next((choice for choice in (*enough, *short) if _put(choice, demand.need.function, cards)), None)
        if taken is None:
            return False
        has[taken] += 1
    return True


def _put(choice: InstanceChoice, function: str, cards: Iterable[PartialDevice]) -> bool:
    ranked = sorted((card for card in cards if card.device is choice.device), key=lambda card: -card.fill)
    return any(card.add(choice.slice, function) for card in ranked)


def fraction_bound(demands: Sequence[FunctionDemand]) -> float:
    """A lower bound in dollars per hour: rates at the best throughput per price of one kind of slice."""

    def at_best(kind: int) -> float:
        return sum(
            demand.capacity * min(c.price * c.parts[kind] / c.point.throughput for c in demand.choices)
            for demand in demands
        )

    return max(at_best(0), at_best(1))
