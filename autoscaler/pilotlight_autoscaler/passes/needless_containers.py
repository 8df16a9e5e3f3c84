"""Containers that nobody wants: of versions that are shut down, and idle ones beyond what their versions want.

Also those that only the platform wants.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from pilotlight_autoscaler.passes.decision import AddressedCommand
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.desired import purpose_of_kept
from pilotlight_autoscaler.policy.guessed_containers import taken_otherwise
from pilotlight_core.model.messages.node_messages import ContainerReport, Drain, Keep, Shortage
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.networks.network_targets import is_beyond
from pilotlight_core.model.spec import network_of

TAKEN = "its tenant may no longer connect to all that it was let out to"


def end_shut_down(state: PassState) -> None:
    """End the containers of versions that are shut down, and their waiting calls.

    And those that are let out to what has been taken from their tenants since they started.
    """
    nodes, shut_down, grace_s = state.world.nodes, state.given.shut_down, state.given.stop_grace_s
    networked = state.given.networked
    if networked is None:
        networked = [name for name, record in state.versions.items() if network_of(record.spec)]
    let_out = [name for name in networked if name not in shut_down]
    of_these = (found for version in (*shut_down, *let_out) for found in state.world.index.of(version))
    there = ((each.node, each.report) for each in of_these if not nodes[each.node].draining)
    for node, container, why in state.world.shutdowns.due(partial(_why_at_an_end, state), there, state.at):
        within_ms = grace_s * 1000.0
        command = Drain(epoch=state.given.epoch, container=container.id, within_ms=within_ms, reason=why)
        state.leaving.add(container.id)
        state.decision.commands.append(AddressedCommand(node=node, command=command))
        state.decision.notes.append(f"{container.id} ends within {grace_s:g} s: {why}")
    for version, why in shut_down.items():
        view = state.views.get(version)
        if view is not None and view.demand is not None and view.demand.queued:
            state.decision.shortages.append(
                Shortage(version=version, epoch=state.given.epoch, reason=why, never=True, shut_down=True)
            )


def _why_at_an_end(state: PassState, container: ContainerReport) -> str:
    if why := state.given.shut_down.get(container.version):
        return why
    record = state.versions.get(container.version)
    if record is None or not container.network:
        return ""
    is_taken = is_beyond(container.network, network_of(record.spec), state.given.network_of(record.tenant))
    return TAKEN if is_taken else ""


def has_guesses(state: PassState, version: str) -> bool:
    """Whether an agent is to be told of one."""
    return any(taken_otherwise(state.views[version], state.wish_for(version).declared))


def report_guesses(state: PassState, versions: Iterable[str]) -> None:
    """Tell agents which containers are there by the platform's guess, and which are not any more: who pays follows."""
    for version in versions:
        view, declared = state.views[version], state.wish_for(version).declared
        for container, is_guess in taken_otherwise(view, declared):
            if container.id not in state.leaving:
                purpose = Purpose.PREWARM if is_guess else purpose_of_kept(view, declared)
                keep = Keep(epoch=state.given.epoch, container=container.id, purpose=purpose)
                node = state.world.index.node_of(container.id)
                state.decision.commands.append(AddressedCommand(node=node, command=keep))


def drain_surplus(state: PassState, versions: Iterable[str]) -> None:
    """Drain idle containers that their versions have beyond what they want, those of a deployed version by and by."""
    for version in versions:
        view, wish, record = state.views[version], state.wish_for(version), state.versions[version]
        found = state.world.scale_down.leaving(version, view, wish, state.at, but=state.leaving)
        for container in found.at_once:
            state.drain(container.id, record, view.unfunded or f"max_containers={view.ceiling} allows no more")
        for container in found.in_step:
            state.put_aside(container.id, record, f"idle for {container.idle_s:.0f} s")
