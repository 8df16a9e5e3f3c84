"""The groups of devices that would serve an ask, free or not, with their options; cheapest first.

Offers depend only on the ask and on the existing groups, so `Fleet.offers` computes them once per ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pilotlight_core.model.placing import Purchase
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.asks.options import NoOption, Option, Prices, options, slot_options
from pilotlight_placement.fleet.device_classes import DeviceClass, DeviceGroup
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.node import Domain, NodeAbilities, Slot

Zone = tuple[str, str]
"""A region and a zone in it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Offer:
    """An option of an ask, in groups of one class."""

    groups: tuple[DeviceGroup, ...]
    option: Option
    level: int
    """Cost per throughput in 5 % steps."""
    serial: int
    """Number among the ask's offers; within a class, the offer that fits more states of a device has the lowest."""


OfferLevel = tuple[int, tuple[Offer, ...]]
"""The offers of one cost."""
ByCell = Mapping[DeviceGroup, tuple[Offer, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class PreferenceOffers:
    """The offers at one index of the ask's order of preference."""

    number: int
    levels: tuple[OfferLevel, ...]
    by_group: ByCell
    """Cheapest first."""
    zones: frozenset[Zone]


@dataclass(kw_only=True)
class Totals:
    """The devices that filters exclude by the fleet's inventory alone; valid for `inventory`."""

    inventory: int = -1
    refused: dict[str, int] = field(default_factory=dict)
    eligible: int = 0


@dataclass(kw_only=True, eq=False)
class Offers:
    """All offers for an ask, by preference and by group."""

    ask: Ask
    choices: tuple[PreferenceOffers, ...]
    by_group: ByCell
    why: Mapping[DeviceGroup, NoOption]
    """The groups without an offer, and the first filter that leaves none."""
    widest: tuple[Offer, ...]
    """For each class the offer that is open wherever another one is; here, if its open devices are counted by group."""
    counted: tuple[tuple[list[int], int], ...]
    """For the other classes: the counts of their `DeviceClassIndex`, and the index of the relevant one."""
    totals: Totals
    _switchable: tuple[DeviceGroup, ...] | None = None
    _of_use: frozenset[DeviceGroup] | None = None
    """Both are worked out when they are first asked for."""

    def groups(self) -> Iterator[DeviceGroup]:
        """All groups, those without an offer last."""
        yield from self.by_group
        yield from self.why

    @property
    def switchable(self) -> tuple[DeviceGroup, ...]:
        """The groups whose devices would serve the ask after a switch of their MIG mode that needs no reset."""
        if self._switchable is None:
            self._switchable = tuple([group for group in self.groups() if self.switched(group)])
        return self._switchable

    @property
    def of_use(self) -> frozenset[DeviceGroup]:
        """The groups that could serve the ask, in whatever mode."""
        if self._of_use is None:
            self._of_use = frozenset((*self.by_group, *self.switchable))
        return self._of_use

    def switched(self, group: DeviceGroup) -> tuple[Option, ...]:
        """The options of a group's devices after a switch of their MIG mode that needs no reset."""
        device, kind = group.device, group.kind
        if device is None or not device.online_mig or refused_domain(self.ask, group.domain):
            return ()
        made = options(self.ask, device, mig=not kind.mig, shareable=False)
        return () if isinstance(made, NoOption) else tuple(made)


def offers_of(ask: Ask, classes: Mapping[DeviceClass, list[DeviceGroup]], prices: Prices) -> Offers:
    found: list[Offer] = []
    widest: list[Offer] = []
    counted: list[tuple[list[int], int]] = []
    refused: dict[DeviceGroup, NoOption] = {}
    known: dict[DeviceClass, list[Option] | NoOption] = {}
    for sort in sorted(classes, key=lambda sort: sort.order):
        inside: list[DeviceGroup] = []
        for group in classes[sort]:
            if name := refused_domain(ask, group.domain):
                refused[group] = NoOption(filter=name)
            else:
                inside.append(group)
        if not inside:
            continue
        if (made := known.get(sort.anywhere)) is None:
            made = known[sort.anywhere] = _options(ask, sort, inside[0].part)
        if isinstance(made, NoOption):
            refused |= dict.fromkeys(inside, made)
            continue
        more = _offers(made, tuple(inside), prices, len(found))
        if is_tallied(more[0]):
            counted.append((inside[0].class_index.open, more[0].option.index))
        else:
            widest.append(more[0])
        found += more
    numbers = sorted({offer.option.choice for offer in found})
    choices = tuple(_choice(n, [offer for offer in found if offer.option.choice == n]) for n in numbers)
    return Offers(
        ask=ask,
        choices=choices,
        by_group=_by_cell(found),
        why=refused,
        widest=tuple(widest),
        counted=tuple(counted),
        totals=Totals(),
    )


def _options(ask: Ask, kind: DeviceClass, part: Device | Slot) -> list[Option] | NoOption:
    if isinstance(part, Slot):
        return slot_options(ask, part)
    return options(ask, part, mig=kind.mig, shareable=kind.shareable)


def is_tallied(offer: Offer) -> bool:
    """Whether the counts of its class say how many devices are open for it."""
    option = offer.option
    return option.count == 1 and not option.units and len(offer.groups) == offer.groups[0].class_index.groups


def refused_domain(ask: Ask, domain: Domain) -> str:
    """The filter that refuses all nodes of a domain by what they have in common; "" if none does."""
    return refused_location(ask, domain) or refused_abilities(ask, domain.abilities)


def refused_location(ask: Ask, domain: Domain) -> str:
    """The filter about region, zone or purchase that refuses a domain; "" if none does."""
    if ask.regions and domain.region not in ask.regions:
        return "region"
    if ask.zones and domain.zone not in ask.zones:
        return "zone"
    if ask.purchase is not Purchase.ANY and domain.spot is not (ask.purchase is Purchase.SPOT):
        return "purchase"
    return ""


def refused_abilities(ask: Ask, nodes: NodeAbilities) -> str:
    """The filter that refuses nodes with these abilities; "" if none does."""
    if ask.base and ask.base not in nodes.bases:
        return "base"
    if ask.needs and not set(ask.needs) <= set(nodes.features):
        return "feature"
    if ask.shm > nodes.shm:
        return "shm"
    if ask.scratch > nodes.scratch:
        return "scratch"
    return "pids" if ask.pids > nodes.pids else ""


def _offers(made: list[Option], groups: tuple[DeviceGroup, ...], prices: Prices, serial: int) -> list[Offer]:
    part, domain = groups[0].part, groups[0].domain
    price = prices.of_slot(part, domain) if isinstance(part, Slot) else prices.of(part, domain)
    # The option that fits every state in which another one fits comes first: its `open` counts for all.
    widest = sorted(made, key=lambda option: (option.profile, not option.units, option.count))
    return [
        Offer(groups=groups, option=option, level=option.level(price), serial=serial + number)
        for number, option in enumerate(widest)
    ]


def _choice(number: int, offers: list[Offer]) -> PreferenceOffers:
    levels: dict[int, list[Offer]] = {}
    for offer in offers:
        levels.setdefault(offer.level, []).append(offer)
    return PreferenceOffers(
        number=number,
        levels=tuple((level, tuple(levels[level])) for level in sorted(levels)),
        by_group=_by_cell(sorted(offers, key=lambda offer: (offer.level, offer.serial))),
        zones=frozenset((group.domain.region, group.domain.zone) for offer in offers for group in offer.groups),
    )


def _by_cell(offers: Iterable[Offer]) -> ByCell:
    found: dict[DeviceGroup, list[Offer]] = {}
    for offer in offers:
        for group in offer.groups:
            found.setdefault(group, []).append(offer)
    return {group: tuple(made) for group, made in found.items()}
