"""Idle containers are drained for versions without a place: each such version in turn, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pilotlight_autoscaler.passes.moving_plan import shortfalls_without
from pilotlight_autoscaler.passes.pass_reservations import drain_reserved
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.shortage_reports import report_shortfall
from pilotlight_autoscaler.policy.preemption import TrialBudget, choose_victims, round_robin
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.plan import Plan, Shortfall
from pilotlight_placement.plan.reservation import Reservation, reserve
from pilotlight_placement.search.decision_record import NoFit
from pilotlight_placement.search.place import place

ROOM_S = 2.0
"""An idle container ends within this after its drain; until then no other one is drained for the same version."""


class PreemptionRound:
    def __init__(self, state: PassState, asks: Mapping[Ask, list[str]], kept: Reservation | None) -> None:
        """`asks` has the versions of each ask, `kept` is what is reserved."""
        self._state = state
        self._asks = asks
        self._kept = kept

    def run(self, made: Plan) -> list[Shortfall]:
        """Drain idle containers for versions without a place; the shortfalls that remain."""
        state = self._state
        started = Counter(outcome.record.ask for name, outcome in made.outcomes if name)
        rest = {ask: names[started[ask] :] for ask, names in self._asks.items()}
        first, state.world.preemption_turn = state.world.preemption_turn, 0
        shorts, trials = round_robin(made.short, first), TrialBudget()
        helped: list[Shortfall] = []
        with state.fleet.trial():
            for command in (planned.command for planned in made.commands):
                if isinstance(command, PlannedStart) and not state.fleet.refusal(command.held):
                    state.fleet.hold(command.held)
            for container in state.world.lately_drained(state.at, ROOM_S):
                if container in state.fleet.held:
                    state.fleet.release(container)
            if self._kept is not None:
                mine = [short for short in shorts if short.refusal.record.ask == self._kept.ask]
                shorts = [short for short in shorts if short.refusal.record.ask != self._kept.ask]
                helped += [short for short in mine if self._help(short, rest, trials)]
                if len(helped) < len(mine):
                    drain_reserved(state, self._kept)
                reserve(state.fleet, self._kept)
            for number, short in enumerate(shorts):
                if self._help(short, rest, trials):
                    helped.append(short)
                if trials.left <= 0:
                    # The next pass begins with the versions that this one had no time for.
                    state.world.preemption_turn = first + number
                    break
        return shortfalls_without(made.short, helped)

    def _help(self, short: Shortfall, asks: dict[Ask, list[str]], trials: TrialBudget) -> bool:
        """Whether a version has a place once draining containers are gone; drains more idle ones if needed."""
        state = self._state
        ask = short.refusal.record.ask
        version = asks[ask][0]
        view = state.views[version]
        waited_for = view.demand is not None and bool(view.demand.waiting)
        if short.refusal.never or not (waited_for or view.size < view.floor):
            return False
        if not self._is_placed(ask):
            leaving = choose_victims(
                state.fleet, ask, version, state.idle, waited_for=waited_for, spared=state.leaving, trials=trials
            )
            for container, whose in leaving:
                state.drain(container.id, state.versions[whose], f"gives way to {state.versions[version].ref}")
                state.fleet.release(container.id)
                state.idle.held[state.versions[whose].tenant] -= 1
            if not leaving:
                return False
            self._is_placed(ask)
        state.idle.held[ask.tenant] += 1  # counts for the share of the versions after it
        report_shortfall(state, short, asks)
        return True

    def _is_placed(self, ask: Ask) -> bool:
        fleet = self._state.fleet
        found = place(fleet, ask)
        if isinstance(found, NoFit):
            return False
        held = found.held(f"{ask.function}~{fleet.revision}")
        if not fleet.refusal(held):
            fleet.hold(held)
        return True
