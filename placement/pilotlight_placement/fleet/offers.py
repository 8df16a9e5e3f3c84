"""What of the fleet would do for an ask, whatever is free: ways to serve it, cheapest first, and the cells they are in.

This part of a decision depends only on the ask and on which cells there are, so it is made once per ask and kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.placing import Purchase
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceGroup
from pilotlight_placement.fleet.options import NoOption, Option, Prices, options, slot_options
from pilotlight_placement.hardware.node import Domain

Zone = tuple[str, str]
"""A region and a zone in it."""


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Offer:
    """One way to serve the ask, in cells that differ only in where they are."""

    cells: tuple[DeviceGroup, ...]
    option: Option
    level: int
    """Cost per throughput in 5 % steps."""
    serial: int
    """Tells the offers of one ask apart, where nothing else does; an offer that can be met more often comes first."""


OfferLevel = tuple[int, tuple[Offer, ...]]
"""The offers of one cost."""
ByCell = Mapping[DeviceGroup, tuple[Offer, ...]]


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class PreferenceOffers:
    """The offers of one place in the ask's order of preference."""

    number: int
    levels: tuple[OfferLevel, ...]
    by_cell: ByCell
    """The offers of each cell, cheapest first."""
    zones: frozenset[Zone]


@dataclass(kw_only=True, slots=True)
class Totals:
    """How many devices the fleet's own filters rule out, kept until a node comes or goes."""

    inventory: int = -1
    refused: dict[str, int] = field(default_factory=dict)
    eligible: int = 0


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Offers:
    """All that would do for an ask."""

    choices: tuple[PreferenceOffers, ...]
    by_cell: ByCell
    why: Mapping[DeviceGroup, NoOption]
    """The cells without an offer, and the first filter that leaves none."""
    widest: tuple[Offer, ...]
    """For each sort of device the offer that is open wherever another one is: those that must be counted by cell."""
    tallies: tuple[tuple[list[int], int], ...]
    """For the other sorts, where it is counted: a tally's numbers, and which of them."""
    totals: Totals


def offers_of(ask: Ask, sorts: Mapping[DeviceClass, list[DeviceGroup]], prices: Prices) -> Offers:
    """The offers of an ask in some cells."""
    found: list[Offer] = []
    widest: list[Offer] = []
    tallies: list[tuple[list[int], int]] = []
    refused: dict[DeviceGroup, NoOption] = {}
    known: dict[DeviceClass, list[Option] | NoOption] = {}
    for sort in sorted(sorts, key=lambda sort: sort.order):
        inside: list[DeviceGroup] = []
        for cell in sorts[sort]:
            if name := refused_domain(ask, cell.domain):
                refused[cell] = NoOption(filter=name)
            else:
                inside.append(cell)
        if inside:
            made = known.get(sort.anywhere) or _options(ask, inside[0])
            known[sort.anywhere] = made
            if isinstance(made, NoOption):
                refused |= dict.fromkeys(inside, made)
            else:
                more = _offers(made, tuple(inside), prices, len(found))
                if is_tallied(more[0]):
                    tallies.append((inside[0].tally.open, max(0, more[0].option.profile)))
                else:
                    widest.append(more[0])
                found += more
    numbers = sorted({offer.option.choice for offer in found})
    choices = tuple(_choice(n, [offer for offer in found if offer.option.choice == n]) for n in numbers)
    return Offers(
        choices=choices,
        by_cell=_by_cell(found),
        why=refused,
        widest=tuple(widest),
        tallies=tuple(tallies),
        totals=Totals(),
    )


def is_tallied(offer: Offer) -> bool:
    """Whether its sort's tally says how many devices are open for it."""
    option = offer.option
    return option.count == 1 and not option.units and len(offer.cells) == offer.cells[0].tally.cells


def refused_domain(ask: Ask, domain: Domain) -> str:
    """The filter by which a whole domain is out; "" if it is not."""
    if ask.regions and domain.region not in ask.regions:
        return "region"
    if ask.zones and domain.zone not in ask.zones:
        return "zone"
    if ask.purchase is not Purchase.ANY and domain.spot is not (ask.purchase is Purchase.SPOT):
        return "purchase"
    return ""


def _options(ask: Ask, cell: DeviceGroup) -> list[Option] | NoOption:
    if cell.slot is not None:
        return slot_options(ask, cell.slot)
    if cell.device is None:
        return NoOption(filter="type")
    return options(ask, cell.device, mig=cell.kind.mig, shareable=cell.kind.shareable)


def _offers(made: list[Option], cells: tuple[DeviceGroup, ...], prices: Prices, serial: int) -> list[Offer]:
    device, slot, domain = cells[0].device, cells[0].slot, cells[0].domain
    price = prices.of(device, domain) if device else prices.of_slot(slot, domain) if slot else 0.0
    # The option that is met wherever another one is comes first: `DeviceGroup.open` of it counts for all.
    widest = sorted(made, key=lambda option: (option.profile, not option.units, option.count))
    return [
        Offer(cells=cells, option=option, level=option.level(price), serial=serial + number)
        for number, option in enumerate(widest)
    ]


def _choice(number: int, offers: list[Offer]) -> PreferenceOffers:
    levels: dict[int, list[Offer]] = {}
    for offer in offers:
        levels.setdefault(offer.level, []).append(offer)
    return PreferenceOffers(
        number=number,
        levels=tuple((level, tuple(levels[level])) for level in sorted(levels)),
        by_cell=_by_cell(sorted(offers, key=lambda offer: (offer.level, offer.serial))),
        zones=frozenset((cell.domain.region, cell.domain.zone) for offer in offers for cell in offer.cells),
    )


def _by_cell(offers: Iterable[Offer]) -> ByCell:
    found: dict[DeviceGroup, list[Offer]] = {}
    for offer in offers:
        for cell in offer.cells:
            found.setdefault(cell, []).append(offer)
    return {cell: tuple(made) for cell, made in found.items()}
