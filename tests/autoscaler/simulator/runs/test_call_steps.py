"""Call by call the simulated queue does what a home does: it grants the same calls at the same time."""

from __future__ import annotations

from random import Random

import pytest

from pilotlight_autoscaler.simulator.runs import call_steps
from pilotlight_autoscaler.simulator.runs.call_steps import move_by_calls
from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.runs.simulated_container import SimulatedContainer
from pilotlight_autoscaler.simulator.simulated_policy import demand_of_run
from pilotlight_autoscaler.simulator.traffic.function_traffic import RecordedCalls, TimedCall
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.demand import Demand
from pilotlight_gateway.home.home import Home
from tests.autoscaler.simulator.simulated import recorded, run_of
from tests.builders.calls import call, credit

END_S = 59.0


class HomeReplay:
    """The gateway's own home, with calls at known times and containers that end them after known durations."""

    def __init__(self, calls: list[TimedCall], ready_at: list[float], slots: int) -> None:
        self.home = Home(gateway="gw", epoch=1)
        self.calls = {f"call{number}": each for number, each in enumerate(calls)}
        self.ready_at = {f"c{number}": at for number, at in enumerate(ready_at)}
        self.slots = slots
        self.held: dict[str, list[str]] = {name: [] for name in self.ready_at}
        self.ends: dict[str, tuple[float, str]] = {}
        self.waits: dict[str, float] = {}
        self.by_container: dict[str, int] = dict.fromkeys(self.ready_at, 0)
        self._seq = 0

    def run(self) -> Demand:
        """To the end; the demand then."""
        left, starts, beats = list(self.calls), dict(self.ready_at), 1.0
        while True:
            events = [(at, 0, name) for name, (at, _) in self.ends.items()]
            events += [(at, 1, name) for name, at in starts.items()]
            events += [(self.calls[name][0], 2, name) for name in left[:1]]
            at, kind, name = min([*events, (beats, 3, "")])
            if at > END_S:
                break
            if kind == 0:
                _, container = self.ends.pop(name)
                self.held[container].remove(name)
                self.home.done(name, container, 1, at, outcome=Outcome.OK)
            elif kind == 1:
                del starts[name]
                self._credit(name, at)
            elif kind == 2:
                left.pop(0)
                self.home.enqueue(call(name, remaining_ms=3e5), at)
            else:
                beats += 1.0
                for each in self.ready_at.keys() - starts.keys():
                    self._credit(each, at)
            self._grant(at)
        (demand,) = self.home.demand(END_S)
        return demand

    def _credit(self, container: str, at: float) -> None:
        self._seq += 1
        self.home.on_credit(credit(container, self._seq, *self.held[container], slots=self.slots), at)

    def _grant(self, at: float) -> None:
        self.home.expire(at)
        for grant in self.home.grants(at):
            came_at, duration_s = self.calls[grant.call_id]
            self.waits[grant.call_id] = at - came_at
            self.ends[grant.call_id] = (at + duration_s, grant.container)
            self.held[grant.container].append(grant.call_id)
            self.by_container[grant.container] += 1


def drawn(seed: int, calls: int, mean_s: float) -> list[TimedCall]:
    dice = Random(seed)
    return sorted((dice.uniform(0.0, 55.0), dice.expovariate(1 / mean_s)) for _ in range(calls))


def moved(calls: list[TimedCall], ready_at: list[float], slots: int) -> FunctionRun:
    """The simulated function with these containers, without a policy."""
    run = run_of(RecordedCalls(calls), slots=slots)
    for number, at in enumerate(ready_at):
        run.begin(SimulatedContainer(f"c{number}", number, 0.0, at))
    run.begin_minute(0)
    while run.at < END_S:
        run.on_looked(run.at, run.size)
        run.drain_at = run.look_at = float("inf")
        move_by_calls(run, END_S)
    return run


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize(("seed", "count", "mean_s"), [(1, 60, 1.0), (2, 300, 0.6), (3, 150, 2.5)])
def test_the_queue_is_that_of_a_home(seed: int, count: int, mean_s: float, slots: int) -> None:
    """All waits and the demand that is told are those of the gateway's home; so is who has the calls, but for a few."""
    calls, ready_at = drawn(seed, count, mean_s), [2.0, 2.5, 20.0, 30.0]
    replay = HomeReplay(calls, ready_at, slots)
    demand = replay.run()

    run = moved(calls, ready_at, slots)
    told = demand_of_run(run, END_S)

    assert run.sums.waits.calls == len(replay.waits)
    assert run.sums.waits.total_s == pytest.approx(sum(w for w in replay.waits.values() if w >= 1e-3), abs=0.02)
    for each in run.ready:
        assert each.calls == pytest.approx(replay.by_container[each.id], abs=0 if slots == 1 else 5)
    running, queued = (told.running, told.queued) if told else (0, 0)
    assert (running, queued) == (demand.running, demand.queued)
    assert (run.hold_s or 0.0) * 1000 == pytest.approx(demand.service_ms, rel=1e-6)


def test_a_full_queue_refuses_and_an_old_call_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more wait than may, and none longer than it may."""
    monkeypatch.setattr(call_steps, "MOST_QUEUED", 100)
    run = run_of(recorded(*[(1.0, 1.0)] * 120), timeout_s=10)
    run.begin_minute(0)
    move_by_calls(run, 1.5)
    while run.at < 30.0:
        run.on_looked(run.at, run.size)
        move_by_calls(run, 30.0)
    assert (run.queued, run.sums.refused) == (100, 20)

    run.drop_late(30.0)

    assert (run.queued, run.sums.late) == (0, 100)
