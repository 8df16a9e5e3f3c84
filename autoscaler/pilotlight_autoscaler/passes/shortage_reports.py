"""What callers are told whose version gets no container: no place for it, or a limit of its tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.policy.tenant_rooms import LimitedVersion, give_way
from pilotlight_core.model.messages.node_messages import Shortage
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.plan import Shortfall
from pilotlight_placement.search.decision_record import DecisionRecord, NoFit


def report_shortfall(state: PassState, short: Shortfall, asks: Mapping[Ask, list[str]]) -> None:
    """Tell waiting calls why their version gets no container now."""
    tenant = short.refusal.record.ask.tenant
    if not short.refusal.never and (spent := state.world.moves.refusal_for(state.at, tenant)):
        short = replace(short, refusal=replace(short.refusal, reason=f"{short.refusal.reason}; {spent}"))
    if short.refusal.never and state.world.hopes.is_any(short.refusal.record.ask):
        # The nodes that there are could not hold it, and a pool may have one that does.
        short = replace(short, refusal=replace(short.refusal, never=False))
    for version in dict.fromkeys(asks[short.refusal.record.ask]):
        state.world.decisions.add(short.refusal, version=state.versions[version].ref, at=state.at)
        room_s = 0.0 if short.refusal.never else state.expected_room_s(version)
        reason = short.refusal.reason
        if version in state.room_s:
            reason = f"{reason}; a place is made for it, where calls of others still run"
        shortage = Shortage(
            version=version, epoch=state.given.epoch, reason=reason, never=short.refusal.never, room_ms=room_s * 1000.0
        )
        state.decision.shortages.append(shortage)
        state.world.refusals.set_shortage(shortage)


def report_limit(state: PassState, limited: LimitedVersion) -> None:
    """Report a limit of the tenant; for calls that wait, its own idle containers give way."""
    version, record = limited.version, state.versions[limited.version]
    view = state.views[version]
    if view.demand is not None and view.demand.queued:
        _make_own_room(state, limited)
    decided = DecisionRecord(ask=state.ask(version), revision=state.fleet.standing)
    refusal = NoFit(reason=limited.reason, never=False, record=decided, by_limit=True)
    state.world.decisions.add(refusal, version=record.ref, at=state.at)
    shortage = Shortage(version=version, epoch=state.given.epoch, reason=limited.for_callers)
    state.decision.shortages.append(shortage)
    state.world.refusals.note_limit(version, limited.reached.tenant, state.at)
    state.world.refusals.set_shortage(shortage)


def _make_own_room(state: PassState, limited: LimitedVersion) -> None:
    """Drain idle containers of the tenant's other versions, unless enough are leaving already."""
    leaving = state.leaving | state.world.draining.keys()
    going = [each for name in leaving if (each := state.world.index.get(name)) is not None]
    idle = state.idle.beyond_floors(waited_for=True)
    for container, version in give_way(limited, idle, going, state.versions):
        reason = f"gives way to {state.versions[limited.version].ref}: {limited.reason}"
        state.drain(container, state.versions[version], reason)
