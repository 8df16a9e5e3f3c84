"""Decisions: one pass over all versions, from the `World` to commands. Pure and level-triggered.

    needless_containers   what is shut down, or idle beyond what is wanted, ends
    parked_containers     what is parked, and not worth its memory any more, ends
    missing_containers    what is wanted and not there, as far as tenants' limits allow it: parked ones serve again
    plan                  where it starts, and what is cut for it (`pilotlight_placement.plan.plan`)
    preemption_round      which containers are drained for a version without a place: idle ones, and what others owe
    moving_plan           what moves for one that has none even so
    pass_reservations     which devices are kept for the one that has waited longest
    shortage_reports      what callers hear who still wait

Commands may be repeated: agents know container ids and epochs, and the effect of a lost command is still missing at the
next tick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import AddressedCommand, Decision
from pilotlight_autoscaler.passes.missing_containers import MissingContainers
from pilotlight_autoscaler.passes.moving_plan import plan_with_moves, shortfalls_without
from pilotlight_autoscaler.passes.needless_containers import (
    drain_surplus,
    end_shut_down,
    has_guesses,
    report_guesses,
)
from pilotlight_autoscaler.passes.parked_containers import end_parked, needless_parked
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.pass_reservations import current_reservation, reservation_after
from pilotlight_autoscaler.passes.pass_state import PassState
from pilotlight_autoscaler.passes.preemption_round import PreemptionRound
from pilotlight_autoscaler.passes.refused_versions import note_refused
from pilotlight_autoscaler.passes.shortage_reports import report_limit, report_shortfall
from pilotlight_autoscaler.passes.version_views import explain_level, function_of
from pilotlight_autoscaler.plans.plan_commands import AgentSteps, CommandContext
from pilotlight_autoscaler.plans.plan_execution import independent_steps
from pilotlight_autoscaler.policy.desired import purpose_of
from pilotlight_core.model.messages.node_messages import Stop
from pilotlight_core.model.messages.usage_facts import Purpose
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fragmentation.histogram import AskShape
from pilotlight_placement.plan.commands import PlannedStart
from pilotlight_placement.plan.plan import DesiredState, Plan, Shortfall, plan
from pilotlight_placement.search.decision_record import NoFit, Placement

SOUGHT_AT_ONCE = 2
"""Asks for which one pass looks for room by moves, which is dear: the others have their turn in the next ones."""


class Pass:
    def __init__(self, world: World, given: PassInput) -> None:
        self._state = PassState(world, given)
        self._missing = MissingContainers(self._state)
        self._started = Counter[str]()
        self._decided: list[str] = []

    def ask(self, version: str) -> Ask | None:
        """What a container of a version asks for; None: nothing is known of it."""
        return self._state.ask(version) if version in self._state.versions else None

    def inspect(self, versions: Iterable[str]) -> list[str]:
        """Those of which containers are to start, to go, or are there for another reason; nothing else is decided."""
        state = self._state
        there = [version for version in versions if version in state.versions]
        self._decided += there
        self._explain_levels(there)
        return [name for name in there if not self._is_settled(name)]

    def _is_settled(self, name: str) -> bool:
        """Whether nothing is to change of a version; that is remembered."""
        state = self._state
        if state.missing(name) > 0 or self._has_surplus(name) or has_guesses(state, name):
            return False
        if any(True for _ in needless_parked(state, name)):
            return False
        view, wish = state.functions[function_of(state.versions[name])], state.wish_for(name)
        state.given.settled.note(name, view, wish, state.at, state.given.wall)
        return True

    def _has_surplus(self, name: str) -> bool:
        state, pace = self._state, self._state.world.scale_down
        return bool(pace.surplus(name, state.views[name], state.wish_for(name), state.at, but=state.leaving))

    @property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """How many containers each version has that was decided on, and should have."""
        return {version: (self._state.views[version].size, self._state.wanted(version)) for version in self._decided}

    def note_wishes(self, only: Collection[str] | None = None) -> None:
        """Say what versions should have, for the log of wishes, and no more."""
        self._decided = self._state.decided(only)
        for version in self._decided:
            self._state.wish_for(version)

    def run(self, only: Collection[str] | None = None) -> Decision:
        """Decide for all versions whose turn it is, or for those with a new demand."""
        state, options = self._state, self._state.given.options
        self._decided = state.decided(only)
        for name in self._decided:
            state.given.settled.forget(name)
        kept = current_reservation(state)
        if only is None:
            self._explain_levels(self._decided)
            end_shut_down(state)
            drain_surplus(state, self._decided)
            end_parked(state, self._decided)
            report_guesses(state, self._decided)
        asks = self._missing.find(self._decided, at_an_edge=only is not None)
        missing = {ask: len(names) for ask, names in asks.items()}
        desired = DesiredState(wants=(), starts=self._missing.starts, epoch=state.given.epoch, kept=kept)
        made = plan(state.fleet, desired, state.at, options.plain)
        shorts = made.short
        preemption = PreemptionRound(state, asks, self._missing.shares, kept)
        blocked = preemption.run(made) if shorts else []
        helped = shortfalls_without(shorts, blocked)
        sought = self._sought(blocked, asks)
        if only is None and (sought or options.repack):
            others = shortfalls_without(blocked, sought)
            made = plan_with_moves(state, self._missing.starts, missing, made, sought, kept)
            blocked = [*others, *made.short]
        self._add_commands(made, asks)
        if only is None:
            state.world.forget_reclaimed()
            left = [*helped, *blocked]
            state.world.reservation = reservation_after(state, self._decided, left, asks, self._missing.shares)
        rooms = {short.refusal.record.ask for short in sought}
        note_refused(state, blocked, asks, rooms, is_certain=preemption.is_complete)
        for short in blocked:
            report_shortfall(state, short, asks)
        for limited in self._missing.limited:
            report_limit(state, limited)
        state.world.refusals.settle(self._decided, state.at, self._started.keys())
        return state.decision

    def _sought(self, blocked: Sequence[Shortfall], asks: Mapping[Ask, list[str]]) -> list[Shortfall]:
        """Those of the blocked ones for which room by moves is looked for in this pass."""
        if not self._state.given.options.force:
            return []
        refusals, at = self._state.world.refusals, self._state.at
        due = (short for short in blocked if refusals.is_room_due(asks[short.refusal.record.ask], at))
        return list(islice(due, SOUGHT_AT_ONCE))

    def _explain_levels(self, versions: Iterable[str]) -> None:
        state, levels = self._state, self._state.world.levels
        for name in versions:
            view = state.views[name]
            if view.speed is not None and view.rate:
                levels[function_of(state.versions[name])] = explain_level(state.versions[name], view)
            elif levels and view.deployed:
                levels.pop(function_of(state.versions[name]), None)

    def _add_commands(self, made: Plan, asks: dict[Ask, list[str]]) -> None:
        """Convert a plan to commands, and record its decisions."""
        state, given = self._state, self._state.given
        context = CommandContext(
            epoch=given.epoch, new_id=given.new_id, drain=state.drain_command, limits_of=given.limits_of,
            network_of=given.network_of,
        )  # fmt: skip
        steps = AgentSteps(context=context)
        outcomes = dict(made.outcomes)
        starts = [(planned.group, planned.command) for planned in made.commands]
        movers = {g: s.held.tenant for g, s in starts if isinstance(s, PlannedStart) and not s.replaces}
        for planned in made.commands:
            command = planned.command
            if isinstance(command, PlannedStart):
                if command.replaces:
                    state.world.moves.spend(state.at, movers.get(planned.group, ""))
                outcome = outcomes[command.held.container]
                record = self._version_of(command, outcome.record.ask, asks)
                purpose = Purpose.MOVE if command.replaces else self._purpose(record.id)
                if not command.replaces and not state.world.backoff.is_failing(record.id):
                    state.world.scaling.on_up(function_of(record), given.wall)
                self._remember(outcome, steps.start(planned, command, record, purpose), record)
            elif isinstance(command, Stop):
                steps.stop(planned, command, state.served_by(command.container))
            else:
                steps.change_device(planned, command)
        for part in independent_steps(steps.steps):
            if len(part) == 1:
                state.decision.commands.append(AddressedCommand(node=part[0].node, command=part[0].command))
            else:
                state.decision.executions.append(part)
        state.decision.notes += steps.notes

    def _version_of(self, command: PlannedStart, ask: Ask, asks: dict[Ask, list[str]]) -> VersionRecord:
        return self._state.versions[self._state.version_of(command.replaces) if command.replaces else asks[ask].pop(0)]

    def _purpose(self, version: str) -> Purpose:
        self._started[version] += 1
        return purpose_of(self._state.views[version], self._state.wish_for(version), self._started[version] - 1)

    def _remember(self, outcome: Placement | NoFit, container: str, record: VersionRecord) -> None:
        self._state.world.decisions.add(outcome, container, version=record.ref, at=self._state.at)
        if (shape := AskShape.of(outcome.record.ask)) is not None:
            self._state.world.asked.observe(shape, self._state.at)
