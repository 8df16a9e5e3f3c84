"""Single reasons why a fleet can never hold an ask, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.suggestions import nearest
from pilotlight_core.model.versions.manifest_codec import SANDBOX_LIMITS
from pilotlight_placement.asks.ask import CPU, GIB, MIB, Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.offers import Offers, refused_abilities, refused_location
from pilotlight_placement.hardware.catalogue import is_kind, standard

NAMED = 12
NO_SUCH = "no node with such a device or slot"
PURCHASES = {Purchase.SPOT: "not on spot nodes", Purchase.ON_DEMAND: "on spot nodes"}
"""The location of the devices that a purchase excludes."""


def unknown_types(fleet: Fleet, ask: Ask) -> Iterator[str]:
    """A sentence for each type of the ask that neither the catalogue nor the fleet has."""
    names = {*standard().devices, *(group.kind.name for group in fleet.groups.values())} - {CPU}
    for choice in ask.choices:
        if choice.type == CPU or any(is_kind(choice.type, name) for name in names):
            continue
        meant = _nearest_type(choice.type, names)
        hint = f": did you mean {meant}?" if meant else ""
        part = " (vram= gets a part of one)" if "MIG" in choice.type.split("-") else ""
        yield f"there is no GPU type {choice.type} in the catalogue{hint}{part}"


def _nearest_type(word: str, names: Iterable[str]) -> str | None:
    short = sorted({name.partition("-")[0] for name in names})
    head = word.partition("-")[0]
    return head if head in short else nearest(word, [*short, *sorted(names)])


def other_locations(fleet: Fleet, ask: Ask) -> Iterator[str]:
    """How many devices of the ask's types region, zone or purchase exclude, or that no such region or zone exists."""
    groups = [group for group in fleet.groups.values() if group.total]
    for what, asked, of in (
        ("region", ask.regions, [group.domain.region for group in groups]),
        ("zone", ask.zones, [group.domain.zone for group in groups]),
    ):
        if asked and not set(of) & set(asked):
            yield _no_such(what, asked, set(of) - {""})
        elif asked and (
            out := _wanted((group for group, name in zip(groups, of, strict=True) if name not in asked), ask)
        ):
            yield f"{out} in other {what}s"
    if ask.purchase is not Purchase.ANY:
        spot = ask.purchase is Purchase.SPOT
        if out := _wanted((group for group in groups if group.domain.spot is not spot), ask):
            yield f"{out} {PURCHASES[ask.purchase]}"


def missing_abilities(fleet: Fleet, ask: Ask) -> Iterator[str]:
    """How many devices of the ask's types are on nodes that lack an ability, or that no node has it."""
    groups = [group for group in fleet.groups.values() if group.total and not refused_location(ask, group.domain)]
    bases = {base for group in groups for base in group.domain.abilities.bases}
    if ask.base and groups and ask.base not in bases:
        yield _no_such("base environment", (ask.base,), bases)
        return
    lacking: dict[str, int] = {}
    for group in groups:
        if name := refused_abilities(ask, group.domain.abilities):
            lacking[name] = lacking.get(name, 0) + _wanted((group,), ask)
    where = {
        "base": f"on nodes without the base environment {ask.base}",
        "feature": f"on nodes whose agent is older and cannot do {', '.join(ask.needs)} (upgrade it)"
        + (", or whose sandbox holds no such limits" if SANDBOX_LIMITS in ask.needs else ""),
        "shm": f"on nodes that allow less than {ask.shm / MIB:g} MiB of /dev/shm (shm=)",
        "scratch": f"on nodes that allow less than {ask.scratch / MIB:g} MiB of /tmp (scratch=)",
        "pids": f"on nodes that allow fewer than {ask.pids} processes and threads (pids=)",
    }
    yield from (f"{lacking[name]} {words}" for name, words in where.items() if lacking.get(name))


def host_limits(fleet: Fleet, ask: Ask, offers: Offers) -> Iterator[str]:
    """What no host with suitable devices has so much of: memory, or cores."""
    hosts = [
        place.node.host
        for place in fleet.places.values()
        if not place.node.draining and any(unit.group in offers.by_group for unit in place.units)
    ]
    known = [host for host in hosts if host is not None]
    if not known or len(known) < len(hosts):
        return
    if (most := max(host.memory for host in known)) < ask.memory:
        yield f"{NO_SUCH} has more than {most / GIB:.1f} GiB of host memory for containers (memory=)"
    if (cores := max(host.cpu_millis for host in known)) < ask.cpu:
        yield f"{NO_SUCH} has more than {cores / 1000:g} cores for containers (cpu=)"
    if most >= ask.memory and cores >= ask.cpu and not any(_has_both(host, ask) for host in known):
        yield f"{NO_SUCH} has as much host memory and as many cores together"


def _has_both(host: HostShare, ask: Ask) -> bool:
    return host.memory >= ask.memory and host.cpu_millis >= ask.cpu


def _no_such(what: str, asked: Iterable[str], there: set[str]) -> str:
    names = sorted(there)
    shown = ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    only = f"there is {shown}" if names else f"no node names its {what}"
    return f"there is no {what} {' or '.join(asked)}; {only}"


def _wanted(groups: Iterable[DeviceGroup], ask: Ask) -> int:
    return sum(group.total for group in groups if any(_is_kind(choice.type, group) for choice in ask.choices))


def _is_kind(asked: str, group: DeviceGroup) -> bool:
    if group.slot is not None and group.slot.kind is SliceKind.CPU:
        return asked == CPU
    return asked != CPU and is_kind(asked, group.kind.name)


def missing_memory(ask: Ask, offers: Offers) -> str:
    """The device memory that the largest slice of the ask's types lacks; "" if that is enough."""
    if ask.choices[0].type == CPU:
        return ""
    largest = [
        (refused.largest, group) for group, refused in offers.why.items() if refused.filter == "vram" and group.total
    ]
    if not largest:
        return ""
    mib, group = max(largest, key=lambda pair: (pair[0], pair[1].kind.order, pair[1].domain))
    if not ask.vram:
        return ": nothing says how much memory it needs, so only a whole device would do (declare vram=)"
    need = min(ask.mib(choice.count) for choice in ask.choices)
    return (
        f"; the largest slice that exists is {_largest(group)} with {mib / 1024:.1f} GiB: "
        f"{(need - mib) / 1024:.1f} GiB are missing"
    )


def _largest(group: DeviceGroup) -> str:
    if group.slot is not None:
        return f"a {group.slot.kind.value} slice of {group.kind.name}"
    if group.kind.mig and group.device is not None:
        cut = max(group.device.cuts, key=lambda cut: (cut.memory, -cut.profile.index))
        return f"{cut.name} of {group.kind.name}"
    return f"a whole {group.kind.name}"
