"""Parked containers: which of them serve again for waiting calls, and which end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from pilotlight_autoscaler.observations.pending_commands import PendingUnpark
from pilotlight_autoscaler.passes.decision import AddressedCommand
from pilotlight_autoscaler.passes.pass_reservations import current_reservation
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.version_views import function_of
from pilotlight_autoscaler.policy.warmth import stays_s
from pilotlight_core.model.messages.node_messages import (
    ContainerReport,
    NodeReport,
    SliceKind,
    Unpark,
)
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.fleet.reports import IncomingContainer
from pilotlight_placement.plan.reservation import NodeDevice

ANY_SLOT = "any"
"""As agents report that a container returns to any CPU slot of its node."""


def unpark(state: PassState, version: str, most: int, purpose: Purpose) -> int:
    """Have parked containers of a version serve again, the latest parked first; how many."""
    record, done, kept = state.versions[version], 0, current_reservation(state)
    reserved = frozenset() if kept is None or kept.ask == state.ask(version) else kept.devices
    for container in sorted(state.views[version].parked, key=lambda each: (each.idle_s, each.id)):
        if done >= most:
            break
        if container.id in state.leaving or container.id in state.world.staying:
            continue
        node = state.world.index.node_of(container.id)
        slice_ = next(_free_slices(state, state.world.nodes[node], container, reserved), "")
        if slice_:
            _unpark(state, record, container, node, slice_, purpose)
            done += 1
    if done:
        state.world.fleet(state.at)  # their slices are taken, for what else this pass decides
    return done


def _unpark(
    state: PassState, record: VersionRecord, container: ContainerReport, node: str, slice_: str, purpose: Purpose
) -> None:
    world = state.world
    coming = IncomingContainer(
        container=container.id, node=node, slice=slice_, function=function_of(record), tenant=record.tenant,
        neighbours=record.id in world.agreeing, host=container.host, avoid=world.avoiding.get(record.id, ()),
    )  # fmt: skip
    world.unparking[container.id] = PendingUnpark(coming=coming, at=state.at)
    world.parking.pop(container.id, None)  # that is over
    command = Unpark(epoch=state.given.epoch, container=container.id, slice=slice_, purpose=purpose)
    state.decision.commands.append(AddressedCommand(node=node, command=command))
    state.decision.notes.append(f"{record.ref}: {container.id} is unparked on {node}/{slice_}")


def _free_slices(
    state: PassState, report: NodeReport, container: ContainerReport, reserved: Set[NodeDevice]
) -> Iterator[str]:
    """Where it may return to: slices of its node that nobody has or is about to have, nor are kept for another."""
    world = state.world
    open_ = [part for part in report.slices if not {(report.node, part.id), (report.node, part.device)} & reserved]
    if container.slice:  # it is told to leave it, and may stay
        yield from (part.id for part in open_ if part.id == container.slice)
        return
    told = [(pending.node, pending.bind.slice) for pending in world.pending.values()]
    told += [(step.node, bind.slice) for step, bind in world.executions.starts()]
    told += [(each.coming.node, each.coming.slice) for each in world.unparking.values()]
    taken = {slice_ for node, slice_ in told if node == report.node}
    for part in open_:
        fits = part.kind is SliceKind.CPU if container.parks == ANY_SLOT else part.id == container.parks
        if fits and not part.container and part.id not in taken:
            yield part.id


def end_parked(state: PassState, versions: Iterable[str]) -> None:
    """End the parked containers that are not worth their memory any more."""
    for version in versions:
        for container, why in needless_parked(state, version):
            state.drain(container.id, state.versions[version], why)


def needless_parked(state: PassState, version: str) -> Iterator[tuple[ContainerReport, str]]:
    """The parked containers of a version that are to end, and why."""
    view, record = state.views[version], state.versions[version]
    longest_s = stays_s(state.load_s(record))
    for container in view.parked:
        if container.id in state.leaving:
            continue
        if not view.is_kept:
            yield container, "another version is deployed"
        elif view.unfunded:
            yield container, view.unfunded
        elif container.idle_s >= longest_s:
            yield container, f"parked, and not called for {container.idle_s:.0f} s"
