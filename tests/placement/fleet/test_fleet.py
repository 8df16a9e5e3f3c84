"""The fleet's own books: holds, nodes that come and go, trials, and the audit after every change."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pilotlight_core.model.messages.node_messages import SliceKind
from pilotlight_placement.asks.ask import Ask
from pilotlight_placement.fleet.audit import check_integrity
from pilotlight_placement.fleet.fleet import Fleet, ImpossibleChange
from pilotlight_placement.fragmentation.histogram import AskShape, DemandHistogram
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice
from pilotlight_placement.search.decision_record import Placement
from pilotlight_placement.search.place import place
from tests.example_counts import SLOW, examples
from tests.placement.makers import asks, cpu, gpu, node, nodes, some_nodes


def held_of(container: str, found: Placement, wanted: Ask) -> PlacedContainer:
    return PlacedContainer(
        container=container, slice=found.slice, function=wanted.function, tenant=wanted.tenant,
        neighbours=wanted.neighbours,
    )  # fmt: skip


class Life(RuleBasedStateMachine):
    """A fleet under everything that can happen to it."""

    @initialize(some=some_nodes())
    def begin(self, some: list[Node]) -> None:
        self.fleet = Fleet(some)
        self.count = 0

    @rule(wanted=asks())
    def start(self, wanted: Ask) -> None:
        found = place(self.fleet, wanted)
        if isinstance(found, Placement):
            self.count += 1
            self.fleet.hold(held_of(f"c{self.count}", found, wanted))

    @precondition(lambda self: self.fleet.held)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        self.fleet.release(data.draw(st.sampled_from(sorted(self.fleet.held))))

    @rule(changed=nodes("n1"))
    def change(self, changed: Node) -> None:
        self.fleet.put(changed)

    @precondition(lambda self: self.fleet.places)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.fleet.remove(data.draw(st.sampled_from(sorted(self.fleet.places))))

    @precondition(lambda self: self.fleet.places)
    @rule(data=st.data())
    def drain(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.fleet.places)))
        self.fleet.drain(name, draining=not self.fleet.places[name].node.draining)

    @rule(wanted=st.lists(asks(), max_size=3), lost=st.booleans(), changed=nodes("n1"))
    def attempt(self, wanted: list[Ask], lost: bool, changed: Node) -> None:
        before, revision = dict(self.fleet.held), self.fleet.revision
        nodes_before = {name: place.node for name, place in self.fleet.places.items()}
        with self.fleet.trial():
            for number, each in enumerate(wanted):
                found = place(self.fleet, each)
                if isinstance(found, Placement):
                    self.fleet.hold(held_of(f"t{number}", found, each))
                    check_integrity(self.fleet)
            self.fleet.put(replace(changed, resident=frozenset("u")))
            self.fleet.put(changed)
            if lost and self.fleet.places:
                self.fleet.remove(min(self.fleet.places))
        assert self.fleet.held == before
        assert {name: place.node for name, place in self.fleet.places.items()} == nodes_before
        assert self.fleet.revision == revision

    @invariant()
    def is_sound(self) -> None:
        if hasattr(self, "fleet"):
            check_integrity(self.fleet)


TestLife = Life.TestCase
TestLife.settings = examples(60, fewer=SLOW, stateful_step_count=20)


def instance(start: int, profile: str = "3g", name: str = "g") -> Slice:
    return Slice(node="n", kind=SliceKind.MIG, type="H100-80GB", ids=(name,), memory=1, profile=profile, start=start)


def test_what_is_taken_is_not_given_again() -> None:
    """Neither an overlapping instance, nor an illegal start, nor a slice of a node that is not there."""
    fleet = Fleet([node("n", gpu("g", mig=True))])
    fleet.hold(PlacedContainer(container="a", slice=instance(4)))

    for start, profile in ((4, "3g"), (0, "7g"), (6, "1g.2x"), (2, "3g")):
        with pytest.raises(ImpossibleChange):
            fleet.hold(PlacedContainer(container="b", slice=instance(start, profile)))
    with pytest.raises(ImpossibleChange, match="no node"):
        fleet.hold(PlacedContainer(container="b", slice=replace(instance(0), node="m")))
    with pytest.raises(ImpossibleChange, match="already"):
        fleet.hold(PlacedContainer(container="a", slice=instance(0)))
    fleet.hold(PlacedContainer(container="b", slice=instance(0)))


def test_a_node_that_changes_keeps_the_containers_whose_slices_stay() -> None:
    """The others are released."""
    fleet = Fleet([node("n", gpu("g", mig=True), slots=(cpu(0),))])
    fleet.hold(PlacedContainer(container="a", slice=instance(4)))
    fleet.hold(
        PlacedContainer(
            container="b", slice=Slice(node="n", kind=SliceKind.CPU, type="CPU", ids=("cpu-0",), memory=1, slot=True)
        )
    )

    fleet.put(node("n", gpu("g", mig=False), slots=(cpu(0),)))

    assert set(fleet.held) == {"b"}
    check_integrity(fleet)


def test_a_kept_trial_stands_and_an_inner_one_is_undone_alone() -> None:
    """Trials nest: each undoes its own steps."""
    fleet = Fleet([node("n", gpu("g", mig=True))])

    with fleet.trial() as outer:
        fleet.hold(PlacedContainer(container="a", slice=instance(4)))
        with fleet.trial():
            fleet.hold(PlacedContainer(container="b", slice=instance(0)))
        outer.keep()

    assert set(fleet.held) == {"a"}
    assert fleet.revision == fleet.standing == 2
    check_integrity(fleet)


def test_the_fleet_in_words() -> None:
    """Slots, then devices by name; nodes that drain are not counted."""
    fleet = Fleet([node("n", gpu("g"), gpu("h", "T4"), slots=(cpu(0), cpu(1))), node("m", gpu("k"), draining=True)])

    assert fleet.describe() == "2 CPU slots, 1 H100-80GB, 1 T4"
    assert fleet.size == 4


def test_a_mix_of_demand_is_followed_step_by_step_as_at_once() -> None:
    """Nothing changes before all that is needed for it is made."""
    at_once, stepwise = (Fleet([node("n", gpu("a"), gpu("b", "T4"))]) for _ in range(2))
    histogram = DemandHistogram()
    histogram.observe(AskShape(mib=8 * 1024), 0.0)
    before = stepwise.device_groups.mix

    at_once.follow(histogram)
    for _ in range(3):
        stepwise.follow_stepwise(histogram)
        assert stepwise.device_groups.mix == before
    stepwise.follow_stepwise(histogram)

    assert stepwise.device_groups.mix == at_once.device_groups.mix == histogram.shares()
    loads = [[group.scores.loads for group in fleet.groups.values()] for fleet in (at_once, stepwise)]
    assert loads[0] == loads[1]
