"""Carries a plan out, one command after the other, and holds it to everything that it must not do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import HostShare, Stop
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.plan.commands import PlanCommand, PlannedStart
from pilotlight_placement.plan.plan import Plan

STOPPED: dict[str, HostShare] = {}
"""What the stopped containers of the plan that is carried out were promised."""


def carry_out(fleet: Fleet, made: Plan, check: Callable[[PlanCommand], None] = lambda _: None) -> None:
    """Apply the commands in their order; each must be possible, and wait only for what was done before."""
    STOPPED.clear()
    for number, command in enumerate(made.commands):
        assert command.number == number
        assert all(earlier < number for earlier in command.after)
        apply(fleet, made, command)
        check_integrity(fleet)
        check(command)


def apply(fleet: Fleet, made: Plan, command: PlanCommand) -> None:
    match command.command:
        case PlannedStart(held=held):
            unit = fleet.places[held.slice.node].by_id[held.slice.ids[0]]
            assert not unit.node.node.draining
            if held.slice.profile:
                there = [(each.start, each.profile) for each in unit.gpu.instances] if unit.gpu else []
                assert (held.slice.start, held.slice.profile) in there, "its instance was not cut"
            profile = _profile_index(unit, held)
            assert not unit.parked_beside(held.tenant, profile, held.slice.start), "beside what another has parked"
            fleet.hold(held)
            _host_is_enough(fleet, made, command)
        case Stop(container=container) if container not in fleet.held:
            node = fleet.places[command.node].node
            left = tuple(at for at in node.parked if at.container != container)
            assert left != node.parked, "it is neither there nor parked"
            fleet.put(replace(node, parked=left))
        case Stop(container=container):
            assert not fleet.places[command.node].node.draining
            copies = [
                c for c in made.commands if isinstance(c.command, PlannedStart) and c.command.replaces == container
            ]
            assert all(copy.number in command.after for copy in copies), "broken before made"
            _leave_instances(fleet, container)
            STOPPED[container] = fleet.held[container].host
            fleet.release(container)
        case Cut() | SwitchMig():
            _describe(fleet, command.node, command.command)


def _profile_index(unit: Unit, held: PlacedContainer) -> int:
    family = unit.gpu.device.family if unit.gpu is not None else None
    return family.by_key[held.slice.profile].index if family is not None and held.slice.profile else -1


def _host_is_enough(fleet: Fleet, made: Plan, start: PlanCommand) -> None:
    """Also when only what the start waits for has been done before it."""
    host = fleet.places[start.node].node.host
    if host is None:
        return
    waited: set[int] = set()
    for number in reversed(range(start.number)):
        if number in start.after or any(number in made.commands[each].after for each in waited):
            waited.add(number)
    late = [c for c in made.commands[: start.number] if c.number not in waited and c.node == start.node]
    gone = [STOPPED[c.command.container] for c in late if isinstance(c.command, Stop)]
    there = [held.host for held in fleet.held.values() if held.slice.node == start.node] + gone
    assert sum(share.memory for share in there) <= host.memory
    assert sum(share.cpu_millis for share in there) <= host.cpu_millis


def _leave_instances(fleet: Fleet, container: str) -> None:
    """As an agent does: the instance of a container that is gone stays until it is destroyed."""
    slice_ = fleet.held[container].slice
    place = fleet.places[slice_.node]
    unit = place.by_id[slice_.ids[0]]
    if slice_.profile and unit.gpu is not None:
        changed = replace(unit.gpu, instances=tuple(sorted({*unit.gpu.instances, *unit.instances()})))
        gpus = tuple(changed if gpu.id == unit.gpu.id else gpu for gpu in place.node.gpus)
        fleet.put(replace(place.node, gpus=gpus))


def _describe(fleet: Fleet, node: str, command: Cut | SwitchMig) -> None:
    place = fleet.places[node]
    assert not place.node.draining
    unit = place.by_id[command.device]
    assert unit.gpu is not None
    if isinstance(command, Cut):
        used = set(unit.instances())
        parked = {MigPlacement(start=at.start, profile=at.profile) for at in unit.parked}
        assert not parked & set(command.destroy), "the instance of what is parked would be destroyed"
        there = set(unit.gpu.instances) | used
        assert not used & set(command.destroy), "an instance in use would be destroyed"
        assert set(command.destroy) <= there
        left = there - set(command.destroy) | set(command.create)
        assert unit.gpu.device.family is not None
        unit.gpu.device.family.masks_of(left)
        changed = replace(unit.gpu, instances=tuple(sorted(left)))
    else:
        assert unit.is_empty, "MIG mode of a GPU in use"
        assert not unit.parked, "MIG mode of a GPU on which something is parked"
        assert unit.gpu.device.online_mig, "MIG mode switched where it needs a reset"
        changed = replace(unit.gpu, mig=command.on, instances=())
    gpus = tuple(changed if gpu.id == command.device else gpu for gpu in place.node.gpus)
    fleet.put(replace(place.node, gpus=gpus))
