"""Nested calls that wait for what their own callers hold."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.nested.nested_book import NestedBook, OpenNested, key_of
from pilotlight_gateway.nested.nested_waits import CIRCLE_S, SHORTAGE_S, NestedWaits
from tests.builders.nodes import container, cpu_slot, gpu_slice, node_report
from tests.builders.specs import function_spec, version_record
from tests.gateway.nested.nested_world import asked, live_call


class Trees:
    """Calls that wait for calls. A function's version is named after it."""

    def __init__(self) -> None:
        self.book = NestedBook()
        self.live: dict[str, InFlightCall] = {}
        self.waits = NestedWaits()
        self.containers: list[Any] = []
        self.slices: tuple[Any, ...] = ()

    def call(
        self, name: str, function: str, *, granted: bool, parent: str = "", grant: int = 1, number: int = 0
    ) -> OpenNested | None:
        """A live call of a function, made by another one or from outside; it runs in its container of that number."""
        version = version_record(function_spec(function), id=f"ver_{function}")
        live = self.live[name] = live_call(name, granted=granted, number=grant, version=version)
        if live.origin.grant is not None:
            live.origin.grant = msgspec.structs.replace(live.origin.grant, container=f"{function}-{number}")
        if not parent:
            return None
        one = self.book.enter(key_of(asked(parent=parent)), "n1", self.book.lineage_of(parent).below("x"), "r")
        self.book.begun(one, name, version.id)
        return one

    def refused(self, at: float) -> str:
        """The call that is refused now, and the beginning of the reason."""
        reports = [node_report(containers=tuple(self.containers), slices=self.slices)]
        found = self.waits.refuse_one(self.book, self.live.get, lambda _: reports, at)
        return f"{found[0].call_id} {found[1].detail.split(':')[0]}" if found is not None else ""

    def hold(self, function: str, slots: int = 1, state: ContainerState = ContainerState.READY) -> None:
        """A container of a function."""
        number = sum(each.version == f"ver_{function}" for each in self.containers)
        self.containers.append(container(f"{function}-{number}", f"ver_{function}", slots=slots, state=state))


def crossed() -> Trees:
    """a > b and b > a, with one slot each: both nested calls wait for the slot that the other tree holds."""
    trees = Trees()
    trees.call("a1", "a", granted=True)
    trees.call("b1", "b", granted=True)
    trees.call("b2", "b", granted=False, parent="a1")
    trees.call("a2", "a", granted=False, parent="b1")
    trees.hold("a")
    trees.hold("b")
    return trees


def test_of_trees_that_hold_each_others_slots_the_last_call_is_refused() -> None:
    """After a while, and one alone: the others can go on then."""
    trees = crossed()

    assert trees.refused(0.0) == ""
    assert trees.refused(CIRCLE_S - 0.1) == ""
    assert trees.refused(CIRCLE_S) == "b2 deadlock"


def test_where_anything_moves_nothing_is_refused() -> None:
    """A free slot, a container that starts, a slot held by a call that waits for nobody, or one of another gateway."""
    free, starting, busy, elsewhere = crossed(), crossed(), crossed(), crossed()
    free.hold("a")
    free.hold("b")
    starting.hold("a", state=ContainerState.LOADING)
    starting.hold("b", state=ContainerState.BINDING)
    busy.containers = []
    for function in "ab":
        busy.call(f"{function}9", function, granted=True)
        busy.hold(function, slots=2)
    elsewhere.containers = []
    elsewhere.hold("a", slots=2)
    elsewhere.hold("b", slots=2)

    for trees in (free, starting, busy, elsewhere):
        assert [trees.refused(at) for at in (0.0, CIRCLE_S, 10 * CIRCLE_S)] == ["", "", ""]


def chained() -> Trees:
    """a1 > b1 > c1 and a2 > b2: b1 holds the only slot of b, which b2 waits for, and c1 is queued."""
    trees = Trees()
    trees.call("a1", "a", granted=True)
    trees.call("a2", "a", granted=True)
    trees.call("b1", "b", granted=True, parent="a1")
    trees.call("b2", "b", granted=False, parent="a2")
    trees.call("c1", "c", granted=False, parent="b1")
    trees.hold("a", slots=8)
    trees.hold("b")
    return trees


def test_a_call_that_waits_for_a_queue_which_moves_holds_nobody_up() -> None:
    """A cold start, a function that other calls keep busy, one that leaves, and one without a container as yet."""
    starting, busy, leaving, none = chained(), chained(), chained(), chained()
    starting.hold("c", state=ContainerState.WARMING)
    busy.call("c9", "c", granted=True)
    busy.hold("c")
    leaving.hold("c", state=ContainerState.DRAINING)

    for trees in (starting, busy, leaving, none):
        assert [trees.refused(at) for at in (0.0, CIRCLE_S, 10 * CIRCLE_S)] == ["", "", ""]


def test_a_call_in_a_container_that_leaves_holds_no_slot_of_one_that_is_ready() -> None:
    """There a call from outside runs."""
    trees = crossed()
    trees.call("b0", "b", granted=True)
    trees.call("b1", "b", granted=True, number=1)
    trees.hold("b", state=ContainerState.DRAINING)

    assert [trees.refused(at) for at in (0.0, 10 * CIRCLE_S)] == ["", ""]


def test_a_slot_that_changes_hands_begins_the_wait_anew() -> None:
    """Then the function has served somebody."""
    trees = crossed()
    assert trees.refused(0.0) == ""
    trees.call("b1", "b", granted=True, grant=2)

    assert trees.refused(CIRCLE_S) == ""
    assert trees.refused(2 * CIRCLE_S - 0.1) == ""


def test_a_full_fleet_may_yet_find_a_place() -> None:
    """So those that wait for each other there are refused later."""
    trees, said = crossed(), list[str]()
    for at in (0.0, CIRCLE_S, SHORTAGE_S - 0.1, SHORTAGE_S):
        trees.live["b2"].origin.note_shortage("no free slot", at)
        trees.live["a2"].origin.note_shortage("no free slot", at)
        said.append(trees.refused(at))

    assert said == ["", "", "", "b2 deadlock"]


def test_the_wait_begins_anew_once_something_has_moved() -> None:
    """What was so a while ago counts no more."""
    trees = crossed()
    assert trees.refused(0.0) == ""
    trees.hold("a")
    trees.hold("b")
    assert trees.refused(CIRCLE_S - 1.0) == ""
    trees.containers = trees.containers[:2]

    assert trees.refused(CIRCLE_S) == ""
    assert trees.refused(2 * CIRCLE_S) == "b2 deadlock"


def test_a_call_that_waits_for_a_running_one_is_no_circle() -> None:
    """Its nested call ends some time, and frees it."""
    trees = Trees()
    trees.call("a1", "a", granted=True)
    trees.call("b1", "b", granted=True, parent="a1")
    trees.call("c1", "c", granted=True)
    trees.call("a2", "a", granted=False, parent="c1")
    trees.hold("a")

    assert [trees.refused(at) for at in (0.0, 10 * CIRCLE_S)] == ["", ""]


def lacking(*containers: Any, **more: Any) -> Trees:
    """a1 > b1, and the fleet has no place for a container of b; of the containers there a's is one, with one call."""
    trees = Trees()
    trees.call("a1", "a", granted=True)
    trees.call("b1", "b", granted=False, parent="a1")
    trees.containers = [container("a-0", "ver_a", running=1, **more), *containers]
    return trees


def refused_for_want_of_a_place(trees: Trees) -> str:
    """What is refused in the end, while the controller says all along that there is no place."""
    for at in (100.0, 100.0 + SHORTAGE_S - 0.1, 100.0 + SHORTAGE_S):
        trees.live["b1"].origin.note_shortage("no free slot", at)
        said = trees.refused(at)
        assert not said or at == 100.0 + SHORTAGE_S
    return said


def test_without_a_place_it_is_refused_where_its_callers_hold_the_last_one() -> None:
    """As long as the controller says that there is none."""
    trees = lacking()
    assert [trees.refused(at) for at in (0.0, 2 * SHORTAGE_S)] == ["", ""]
    assert refused_for_want_of_a_place(trees) == "b1 capacity"
    assert trees.refused(200.0) == ""  # that was long ago


def test_callers_of_two_trees_may_hold_the_last_places_together() -> None:
    """Both wait for a place, and the last one is refused."""
    trees = lacking(container("c-0", "ver_c", running=1))
    trees.call("c1", "c", granted=True)
    trees.call("b2", "b", granted=False, parent="c1")
    trees.live["b2"].origin.note_shortage("no free slot", 100.0)

    assert refused_for_want_of_a_place(trees) == "b2 capacity"


def test_without_a_place_it_waits_where_others_are_in_the_way() -> None:
    """A call that runs and waits for nobody, one of another gateway, a container that idles, starts or leaves."""
    busy = container("c-0", "ver_c", running=1)
    for other in (
        busy,
        container("c-0", "ver_c"),
        container("c-0", "ver_c", running=1, state=ContainerState.DRAINING),
        container("c-0", "ver_c", state=ContainerState.LOADING),
    ):
        assert refused_for_want_of_a_place(lacking(other)) == ""
    shared = lacking(slots=2)
    shared.containers = [container("a-0", "ver_a", slots=2, running=2)]
    assert refused_for_want_of_a_place(shared) == ""
    nobody = lacking()
    nobody.containers = []
    assert refused_for_want_of_a_place(nobody) == ""


def test_a_function_that_needs_a_gpu_wants_no_place_of_processors() -> None:
    """What idles there is not in its way; for a function without one it might make a place."""
    trees = lacking(container("c-0", "ver_c", slice="cpu-1"), slice="GPU-1")
    trees.slices = (gpu_slice(), cpu_slot(1))
    assert refused_for_want_of_a_place(trees) == ""

    spec = msgspec.structs.replace(trees.live["b1"].call.version.spec, gpu=(GpuAsk(type="H100"),))
    trees.live["b1"].call.version = msgspec.structs.replace(trees.live["b1"].call.version, spec=spec)
    assert refused_for_want_of_a_place(trees) == "b1 capacity"


def test_with_nothing_queued_nothing_is_remembered() -> None:
    """And no report is read."""
    trees = Trees()
    trees.call("a1", "a", granted=True)
    trees.call("b1", "b", granted=True, parent="a1")

    assert trees.waits.refuse_one(trees.book, trees.live.get, lambda _: [][1], 0.0) is None
