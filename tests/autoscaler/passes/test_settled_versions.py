"""Versions of which nothing is to change are not decided on, and the same decisions come out."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.observations.world import NODE_LOST_S, World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.passes.settled_versions import (
    LOOK_EVERY_S,
    WAITING_LOOK_S,
    SettledVersions,
    restless_versions,
)
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.spec import SLO
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container, node_report
from tests.example_counts import examples

FUNCTION = "acme:hello.greet"


class Looks:
    """A world with one version, of which each look is remembered or none."""

    def __init__(self, *, settles: bool, **options: Any) -> None:
        self.world, self.settled = World(), SettledVersions()
        self._settles = settles
        self._record = record(**options)
        self._seq = 0
        self._idle_since: dict[int, float] = {}

    def hear(self, at: float, running: list[int], told: dict[str, Any]) -> None:
        """A report of so many calls in each container, and the home's word."""
        self._seq += 1
        self._idle_since = {n: self._idle_since.get(n, at) for n, calls in enumerate(running) if not calls}
        there = [
            container(
                f"c{number}", slice=f"cpu-{number}", slots=4, running=calls,
                idle_s=at - self._idle_since.get(number, at),
                state=ContainerState.READY,
            )
            for number, calls in enumerate(running)
        ]  # fmt: skip
        self.world.on_report(report(*there, slots=8, seq=self._seq), at)
        self.world.on_demand(demand(function=FUNCTION, service_ms=100.0, **told), at)

    def is_settled(self, at: float) -> bool:
        """Whether a turn finds that nothing is to change, without a look."""
        self.world.scaling.sweep(at, sweeps=1)
        stirred = FUNCTION in self.world.scaling.take_stirred()
        return self._settles and not stirred and self.rests(at)

    def rests(self, at: float) -> bool:
        """Whether nothing is seen that would make a look worth while."""
        restless = restless_versions(self.world, at)
        return not restless and not self.settled.unsettled(["ver_1"], self.world, at)

    def look(self, at: float) -> list[str]:
        """What a look finds to change."""
        known = {"ver_1": self._record}
        given_ = PassInput(
            versions=known, deployed=known, epoch=1, new_id=lambda _: "", at=at, wall=at, settled=self.settled
        )
        return Pass(self.world, given_).inspect(known)


NOTHING_ELSE: dict[str, Any] = {}
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "passes_s": st.sampled_from([0.25, 0.25, 1.0, 1.0, 3.0, 40.0]),
            "containers": st.sampled_from([1, 2, 2, 2, 3, 4]),
            "calls": st.sampled_from([1, 3, 4, 5, 6, 6, 7, 9, 12]),
            "told": st.just(NOTHING_ELSE)
            | st.fixed_dictionaries(
                {},
                optional={
                    "queued": st.integers(0, 3), "running": st.integers(0, 16), "backlog": st.integers(0, 2),
                    "late": st.integers(0, 1), "refused": st.booleans(),
                },
            ),
            "repeats": st.integers(1, 6),
            "is_up": st.sampled_from([False, False, True]),
        }
    ),
    max_size=8,
)  # fmt: skip
OPTIONS = st.fixed_dictionaries(
    {"max_inputs": st.just(4)},
    optional={
        "min_containers": st.integers(0, 3), "buffer_containers": st.integers(0, 2),
        "max_containers": st.integers(3, 6), "scaledown_window": st.sampled_from([2.0, 10.0, 60.0]),
    },
)  # fmt: skip


@given(steps=STEPS, options=OPTIONS)
@examples(600, deadline=None)
def test_what_is_not_looked_at_would_not_change(steps: list[dict[str, Any]], options: dict[str, Any]) -> None:
    """However calls, containers and time go: a version that is left out is one of which a look finds nothing."""
    some, all_, at = Looks(settles=True, **options), Looks(settles=False, **options), 0.0
    for step in steps:
        calls, size = step["calls"], step["containers"]
        running = [min(4, max(0, calls - 4 * number)) for number in range(size)]
        for _ in range(step["repeats"]):
            at += step["passes_s"]
            for each in (some, all_):
                each.hear(at, running, {"running": calls, "arrivals": 1} | step["told"])
            left_out, is_left_out_never = some.is_settled(at), all_.is_settled(at)
            found = all_.look(at)
            assert not is_left_out_never
            assert ([] if left_out else some.look(at)) == found
            if step["is_up"]:
                for each in (some, all_):
                    each.world.scaling.on_up(FUNCTION, at)


def busy(calls: int = 3) -> Looks:
    """Two containers of four slots, and so many calls as need just these."""
    looks = Looks(settles=True, max_inputs=4)
    looks.hear(0.0, [calls, calls], {"running": 2 * calls, "arrivals": 1})
    assert looks.look(0.0) == []
    return looks


def test_a_function_that_has_what_its_calls_need_is_left_out() -> None:
    """Until it is looked at again in any case."""
    looks = busy()
    assert looks.rests(1.0)

    looks.hear(1.0, [3, 2], {"running": 5, "arrivals": 1})
    assert looks.rests(1.0)

    looks.hear(2 * LOOK_EVERY_S, [3, 3], {"running": 6, "arrivals": 1})
    assert not looks.rests(2 * LOOK_EVERY_S)


def test_it_is_looked_at_when_calls_or_containers_are_others() -> None:
    """Whatever its home or its containers say."""
    for running, told in (
        ([3, 3], {"running": 6, "queued": 1}),
        ([3, 3], {"running": 6, "backlog": 1}),
        ([4, 4], {"running": 8}),
        ([1, 1], {"running": 2}),
        ([3, 3, 0], {"running": 6}),
        ([3], {"running": 6}),
    ):
        looks = busy()
        looks.hear(0.5, running, told)
        assert not looks.rests(0.5), (running, told)

    looks = busy()
    assert not looks.rests(4.0)  # its home is silent


def test_one_that_keeps_more_than_its_calls_need_is_left_out_until_one_may_go() -> None:
    """When a container has been idle for its window; one beyond a ceiling that was lowered goes before that."""
    kept = Looks(settles=True, max_inputs=4, scaledown_window=3.0)
    for at, holds in ((0.0, False), (1.0, True), (2.9, True), (3.0, False)):
        kept.hear(at, [3, 3, 0], {"running": 6})
        assert kept.rests(at) is holds, at
        if not at:
            assert kept.look(at) == []

    lowered = Looks(settles=True, max_inputs=4, max_containers=2)
    lowered.hear(0.0, [3, 3, 0], {"running": 6})
    assert lowered.look(0.0) == []
    assert not lowered.rests(0.5)


def test_what_is_taken_over_is_looked_at_though_a_ceiling_bounds_it() -> None:
    """It ends with time alone."""
    looks = Looks(settles=True, max_inputs=4, max_containers=3, scaledown_window=10.0)
    memory = FunctionMemory(10.0, 0.0)
    memory.on_deploy("ver_0", 10.0, 0.0)
    memory.observe(4, 0.0)
    looks.world.scaling.restore({FUNCTION: memory})

    for at in (1.0, 2.0):
        looks.hear(at, [3, 0, 0], {"running": 3, "arrivals": 1})
        assert not looks.rests(at)
        assert looks.look(at) == []


def test_one_that_holds_a_pace_is_looked_at_each_time() -> None:
    """Its engines tell something new each second, whatever its calls do."""
    looks = Looks(settles=True, max_inputs=4, slo=SLO(itl_ms=50.0))
    looks.hear(0.0, [3, 3], {"running": 6})

    assert looks.look(0.0) == []
    assert not looks.rests(0.25)


def test_what_was_forgotten_is_looked_at() -> None:
    """When it was decided on, or limits of tenants have changed."""
    looks = busy()
    looks.settled.forget("ver_1")
    assert not looks.rests(0.5)

    looks = busy()
    looks.settled.clear()
    assert len(looks.settled) == 0


def test_what_leaves_or_may_be_lost_is_looked_at() -> None:
    """Each turn, as its calls do not show it."""
    world = World()
    world.on_report(node_report("n1", containers=(container("c1"), container("c2", "ver_2")), slices=()), 0.0)
    world.on_report(node_report("n2", containers=(container("c3", "ver_3"),), slices=()), 9.0)
    world.on_report(node_report("n3", containers=(container("c4", "ver_4"),), slices=(), draining=True), 9.0)
    assert restless_versions(world, NODE_LOST_S) == {"ver_4"}

    world.replacing["c3"] = 9.0
    assert restless_versions(world, NODE_LOST_S) == {"ver_3", "ver_4"}
    world.draining["c3"] = world.replacing.pop("c3")
    assert restless_versions(world, NODE_LOST_S) == {"ver_3", "ver_4"}
    assert restless_versions(world, NODE_LOST_S + 0.1) == {"ver_1", "ver_2", "ver_3", "ver_4"}


def test_what_waits_is_looked_at_again_when_its_home_tells_something_new() -> None:
    """Or after some seconds."""
    waits = {"running": 8, "queued": 3}
    for later, told, running, holds in (
        (0.5, {}, [4, 4], True),
        (WAITING_LOOK_S * 1.5, {}, [4, 4], False),
        (0.5, {"queued": 4}, [4, 4], False),
        (0.5, {"arrivals": 1}, [4, 4], False),
        (0.5, {"late": 1}, [4, 4], False),
        (0.5, {}, [4, 3], False),
        (0.5, {}, [4, 4, 0], False),
    ):
        looks = Looks(settles=True, max_inputs=4, max_containers=2)
        looks.hear(0.0, [4, 4], waits | {"arrivals": 0})
        assert looks.look(0.0) == []
        looks.hear(later, running, waits | {"arrivals": 0} | told)
        assert looks.rests(later) is holds, (later, told, running)


def test_what_is_parked_alone_rests_until_somebody_calls() -> None:
    """Nodes have thousands of them: they cost no look each second, and a call or a change of theirs does not wait."""
    parked = container("c1", state=ContainerState.PARKED, slice="", parks="any", idle_s=5.0)
    looks, late = Looks(settles=True, forecast=False), 1.0 + 1.5 * LOOK_EVERY_S

    def rests(at: float) -> bool:
        looks.world.on_report(report(parked, seq=int(at)), at)
        return looks.rests(at)

    assert not rests(1.0)
    assert looks.look(1.0) == []
    assert rests(2.0)
    assert rests(30.0)
    assert not rests(late)

    looks.world.on_demand(demand(function=FUNCTION, queued=1), late)
    assert looks.look(late) == ["ver_1"]
    looks.world.demands.clear()
    assert looks.look(late) == []
    assert rests(late + 1.0)
    looks.world.on_demand(demand(function=FUNCTION, queued=1), late + 1.0)
    assert not rests(late + 1.0)
    looks.settled.clear()
    assert not rests(late + 9.0)
