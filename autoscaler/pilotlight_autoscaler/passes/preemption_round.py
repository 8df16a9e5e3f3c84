"""Containers are drained for versions without a place: in one pass first idle ones, for each such version in turn; then
what tenants above their share owe to those below, as `policy/reclaim` says, for all that these miss at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from pilotlight_autoscaler.passes.moving_plan import shortfalls_without
from pilotlight_autoscaler.passes.parked_containers import ANY_SLOT
from pilotlight_autoscaler.passes.pass_reservations import drain_reserved
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.shortage_reports import report_shortfall
from pilotlight_autoscaler.policy.expected_room import call_s
from pilotlight_autoscaler.policy.preemption import PreemptionVictim, TrialBudget, choose_victims, round_robin
from pilotlight_autoscaler.policy.reclaim import Reclaim, shape_of
from pilotlight_autoscaler.policy.shares import TenantShares
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.device_classes import DeviceGroup
from pilotlight_placement.hardware.node import PlacedContainer
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.plan import Plan, Shortfall
from pilotlight_placement.plan.reservation import Reservation, reserve
from pilotlight_placement.search.place import first_place

ROOM_S = 2.0
"""An idle container ends within this after its drain; until then no other one is drained for the same version."""
RECLAIMS = 64
"""Containers that are taken back in one pass."""


class PreemptionRound:
    def __init__(
        self, state: PassState, asks: Mapping[Ask, list[str]], shares: TenantShares, kept: Reservation | None
    ) -> None:
        """`asks` has the versions of each ask, `kept` is what is reserved."""
        self._state = state
        self._asks = asks
        self._shares = shares
        self._kept = kept
        self._trials = TrialBudget()
        self._idle: dict[tuple[frozenset[DeviceGroup], bool], list[PreemptionVictim]] = {}
        """Those that may go, by the devices that would be of use, and whether calls wait."""
        self._rest: dict[Ask, list[str]] = {}
        """The versions whose containers were not started, by ask."""
        self._served = set[str]()
        """The versions that have a place for another container: one that starts, or an idle one that goes."""
        self._ends_in_s: dict[tuple[str, str], float] = {}
        """By node and device: when what leaves it is expected to be gone."""

    @property
    def is_complete(self) -> bool:
        """Whether there was time to try all that it had to."""
        return self._trials.left > 0

    def run(self, made: Plan) -> list[Shortfall]:
        """Drain containers for versions without a place; the shortfalls that remain."""
        state = self._state
        started = Counter(outcome.record.ask for name, outcome in made.outcomes if name)
        self._rest = {ask: names[started[ask] :] for ask, names in self._asks.items()}
        self._served = {version for ask, names in self._asks.items() for version in names[: started[ask]]}
        first, state.world.preemption_turn = state.world.preemption_turn, 0
        shorts = round_robin(made.short, first)
        helped: list[Shortfall] = []
        with state.fleet.trial():
            for command in (planned.command for planned in made.commands):
                if isinstance(command, PlannedStart) and not state.fleet.refusal(command.held):
                    state.fleet.hold(command.held)
            for container, since in (*state.world.draining.items(), *state.world.parking.items()):
                if state.at - since < ROOM_S and container in state.fleet.held and self._is_idle_one(container):
                    state.fleet.release(container)
            if self._kept is not None:
                mine = [short for short in shorts if short.refusal.record.ask == self._kept.ask]
                shorts = [short for short in shorts if short.refusal.record.ask != self._kept.ask]
                helped += [short for short in mine if self._help(short)]
                if len(helped) < len(mine):
                    drain_reserved(state, self._kept)
                reserve(state.fleet, self._kept)
            for number, short in enumerate(shorts):
                if self._help(short):
                    helped.append(short)
                    self._served.add(self._rest[short.refusal.record.ask][0])
                if self._trials.left <= 0:
                    # The next pass begins with the versions that this one had no time for.
                    state.world.preemption_turn = first + number
                    break
            helped += self._reclaim(made.short, helped)
        for short in helped:
            report_shortfall(state, short, self._rest)
        return shortfalls_without(made.short, helped)

    def _is_idle_one(self, container: str) -> bool:
        """Whether a drained container is there and had no calls: nothing was taken back with it."""
        world = self._state.world
        return container not in world.reclaimed and world.state(container) not in (None, ContainerState.GONE)

    def _help(self, short: Shortfall) -> bool:
        """Whether a version has a place once draining containers are gone; drains more idle ones if needed."""
        ask = short.refusal.record.ask
        version = self._rest[ask][0]
        if short.refusal.never or not (self._is_waited_for(version) or self._lacks_floor(version)):
            return False
        return self._is_placed(ask) or (self._drain_idle(version, ask) and self._is_placed(ask))

    def _reclaim(self, shorts: tuple[Shortfall, ...], helped: list[Shortfall]) -> list[Shortfall]:
        """Take back what is owed, for the tenant whose turn it is; those that are helped by it, and were not before."""
        state, shares, known = self._state, self._shares, {id(short) for short in helped}
        missing = [short.missing - (id(short) in known) for short in shorts]
        any_leaves = self._release_leaving()
        there = [state.views[self._rest[short.refusal.record.ask][0]].size for short in shorts]
        waiting = [
            (shares.turn(short.refusal.record.ask.tenant), there[number], number)
            for number, short in enumerate(shorts)
            if missing[number] > 0 and not short.refusal.never
        ]
        if not waiting:
            return []
        reclaim = Reclaim(state.fleet, shares, state.views, state.versions, state.world.index)
        for version in self._served:
            reclaim.note_place(version)
        full: set[Ask] = set()
        """Shapes of asks for which nothing is free, or becomes free."""
        found: dict[int, Shortfall] = {}
        heapify(waiting)
        budget = RECLAIMS
        while waiting and budget > 0 and self._trials.left > 0:
            turn, _, number = heappop(waiting)
            ask = shorts[number].refusal.record.ask
            if (now := shares.turn(ask.tenant)) > turn:
                heappush(waiting, (now, there[number], number))
                continue
            version, shape = self._rest[ask][0], shape_of(ask)
            held = self._placed(ask) if any_leaves and shape not in full else None
            if held is None and self._take_back(reclaim, version, ask):
                budget -= 1
                any_leaves, held = True, self._placed(ask)
                full.clear()
            if held is None:
                full.add(shape)
                continue
            reclaim.note_place(version)
            self._expect_room(version, held)
            if id(shorts[number]) not in known:
                found[number] = shorts[number]
            missing[number], there[number] = missing[number] - 1, there[number] + 1
            if missing[number] > 0:
                heappush(waiting, (shares.turn(ask.tenant), there[number], number))
        return list(found.values())

    def _expect_room(self, version: str, held: PlacedContainer) -> None:
        """Note when the place of a version's next container is expected to be free."""
        ends = max(self._ends_in_s.get((held.slice.node, name), 0.0) for name in held.slice.ids)
        self._state.room_s[version] = min(ends, self._state.room_s.get(version, math.inf))

    def _take_back(self, reclaim: Reclaim, version: str, ask: Ask) -> bool:
        """Drain idle containers, or else what is owed to a version's tenant."""
        below = self._shares.is_below_guarantee(ask.tenant)
        wanted = self._is_waited_for(version) or (below and self._lacks_floor(version))
        if not wanted or not reclaim.is_due(version, ask):
            return False
        if self._drain_idle(version, ask):
            return True
        state = self._state
        owed = reclaim.choose(version, ask, spared=state.leaving, trials=self._trials)
        for container, whose in owed:
            state.world.reclaimed[container.id] = ask.tenant
            self._drain(container.id, whose, f"its place is owed to {state.versions[version].ref}", ask.tenant)
        return bool(owed)

    def _drain_idle(self, version: str, ask: Ask) -> bool:
        """Whether idle containers were drained so that the ask has a place."""
        state = self._state
        others = [victim for victim in self._idle_for(ask, version) if victim[1] != version]
        leaving = choose_victims(state.fleet, ask, others, spared=state.leaving, trials=self._trials)
        for container, whose in leaving:
            self._drain(container.id, whose, f"gives way to {state.versions[version].ref}", ask.tenant)
        return bool(leaving)

    def _idle_for(self, ask: Ask, version: str) -> list[PreemptionVictim]:
        """The idle containers that may go for a version, where that may be of use."""
        state, waited_for = self._state, self._is_waited_for(version)
        if ask.spread is not None:
            return state.idle.beyond_floors(waited_for=waited_for)
        key = (state.fleet.offers(ask).of_use, waited_for)
        if key not in self._idle:
            nodes = frozenset().union(*(group.nodes for group in key[0]))
            self._idle[key] = state.idle.on_nodes(state.fleet, nodes, waited_for=waited_for)
        return self._idle[key]

    def _drain(self, container: str, version: str, reason: str, tenant: str) -> None:
        """Have a container give way to one of `tenant`."""
        state = self._state
        there, record = state.world.index.get(container), state.versions[version]
        # What is parked at a GPU ends when another tenant's container is bound there: its hooks would run in vain.
        if there is not None and there.parks not in ("", ANY_SLOT) and record.tenant != tenant:
            state.drain(container, record, reason)
        else:
            state.put_aside(container, record, reason)
        self._release(container, version)

    def _release(self, container: str, version: str) -> None:
        """Count its place as free, from when its calls are expected to end."""
        state = self._state
        held = state.fleet.release(container)
        drained_s = state.at - state.world.draining.get(container, state.at)
        left_s = max(0.0, call_s(state.views[version]) - drained_s) if version in state.views else 0.0
        self._ends_in_s |= {(held.slice.node, name): left_s for name in held.slice.ids}

    def _release_leaving(self) -> bool:
        """Whether containers leave whose places were not counted as free yet; now they are."""
        state, fleet = self._state, self._state.fleet
        index, nodes = state.world.index, state.world.nodes
        leaving = [
            (each.id, each.version)
            for name in dict.fromkeys((*index.draining, *state.world.draining, *state.world.parking))
            if name in fleet.held and (each := index.get(name)) is not None and not nodes[index.node_of(name)].draining
        ]
        for container, version in leaving:
            self._release(container, version)
        return bool(leaving)

    def _is_waited_for(self, version: str) -> bool:
        demand = self._state.views[version].demand
        return demand is not None and bool(demand.waiting)

    def _lacks_floor(self, version: str) -> bool:
        view = self._state.views[version]
        return view.size < view.floor

    def _is_placed(self, ask: Ask) -> bool:
        return self._placed(ask) is not None

    def _placed(self, ask: Ask) -> PlacedContainer | None:
        """A container for the ask, which holds its place from now on; None if there is no place."""
        fleet = self._state.fleet
        found = first_place(fleet, ask)
        if found is None:
            return None
        held = found.held(f"{ask.function}~{fleet.revision}")
        if not fleet.refusal(held):
            fleet.hold(held)
        return held
