"""What nodes report is filed by version, and what of it changes is told once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_autoscaler.observations.container_index import LIVE, ContainerIndex
from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_core.model.messages.node_reports.report_revisions import MovingContainer
from tests.builders.nodes import container


def took(index: ContainerIndex, before: list[ContainerReport], after: list[ContainerReport]) -> set[str]:
    """Take a report of `n1`; the versions that have changed by it."""
    index.changed.clear()
    index.replace("n1", before, after)
    return set(index.changed)


def test_a_version_changes_when_its_containers_come_go_or_change_their_state() -> None:
    """A report that says the same again changes nothing, and one that only counts calls neither."""
    index = ContainerIndex()
    loading = container("c1", state=ContainerState.LOADING)
    ready, busy = container("c1"), container("c1", running=1)

    assert took(index, [], [loading]) == {"ver_1"}
    assert took(index, [loading], [container("c1", state=ContainerState.LOADING, age_s=101.0)]) == set()
    assert took(index, [loading], [ready]) == {"ver_1"}
    assert took(index, [ready], [busy]) == set()
    assert took(index, [busy], [container("c1", running=2, slots=4)]) == set()
    assert took(index, [busy], []) == {"ver_1"}
    assert ("c1" in index, index.versions()) == (False, {})


def test_what_is_idle_is_known_and_said_once_it_has_been_so_for_long() -> None:
    """A container that may make room for others."""
    index = ContainerIndex()
    busy, fresh, long = container("c1", running=1), container("c1", idle_s=0.5), container("c1", idle_s=1.5)

    index.replace("n1", [], [busy])
    index.replace("n1", [busy], [fresh])
    assert (index.idle, index.long_idle) == ({"c1": "ver_1"}, set())
    assert {node: list(there) for node, there in index.idle_on.items()} == {"n1": ["c1"]}
    index.replace("n1", [fresh], [long])
    assert index.long_idle == {"c1"}
    index.long_idle.clear()
    index.replace("n1", [long], [container("c1", idle_s=2.5)])
    assert index.long_idle == set()
    index.replace("n1", [long], [busy])
    assert (index.idle, index.idle_on) == ({}, {})


def test_a_container_of_two_nodes_is_the_later_ones() -> None:
    """The report of the other one is behind, and its next one takes nothing away."""
    index = ContainerIndex()
    index.replace("n1", [], [container("c1")])
    index.replace("n2", [], [container("c1")])
    index.replace("n1", [container("c1")], [])

    assert index.node_of("c1") == "n2"
    assert [found.node for found in index.of("ver_1")] == ["n2"]


def test_what_is_gone_is_nowhere() -> None:
    """Even if its node still reports it."""
    index = ContainerIndex()
    index.replace("n1", [], [container("c1", state=ContainerState.GONE)])

    assert index.get("c1") is None


def test_whose_containers_there_are_is_known() -> None:
    """By container, and by tenant; and which of them take no more calls."""
    index = ContainerIndex()
    here, leaving = container("c1"), container("c2", "ver_2", state=ContainerState.DRAINING)

    index.replace("n1", [], [here, leaving])
    assert [index.version_of(name) for name in ("c1", "c2", "c3")] == ["ver_1", "ver_2", ""]
    assert (set(index.of_tenant("acme")), index.draining) == ({"ver_1", "ver_2"}, {"c2": "ver_2"})

    index.replace("n1", [here, leaving], [here])
    assert (set(index.of_tenant("acme")), index.draining) == ({"ver_1"}, {})
    index.replace("n1", [here], [])
    assert set(index.of_tenant("acme")) == set()


def test_whether_the_same_containers_hold_the_same_is_said() -> None:
    """As then nobody has to be told of the node; also of one of which only the order or a state is new."""
    index = ContainerIndex()
    one, other = container("c1"), container("c2", "ver_2")
    index.replace("n1", [], [one, other])

    again = [container("c1", age_s=101.0), container("c2", "ver_2", running=1)]
    assert index.replace("n1", [one, other], again)
    assert (index.get("c1"), index.get("c2")) == tuple(again)

    elsewhere = [again[0], container("c2", "ver_2", running=1, slice="gpu-7")]
    assert not index.replace("n1", again, elsewhere)
    assert not index.replace("n1", elsewhere, elsewhere[::-1])
    assert not index.replace("n1", elsewhere[::-1], [container("c2", "ver_2", state=ContainerState.DRAINING)])
    assert (index.get("c1"), index.draining) == (None, {"c2": "ver_2"})


STATES = st.sampled_from([ContainerState.READY, ContainerState.READY, ContainerState.LOADING, ContainerState.DRAINING])
CONTAINERS = st.dictionaries(
    st.sampled_from(["c1", "c2", "c3"]),
    st.tuples(st.sampled_from(["ver_1", "ver_2"]), STATES | st.just(ContainerState.GONE), st.integers(0, 4)),
)


@given(reports=st.lists(st.tuples(st.sampled_from(["n1", "n2"]), CONTAINERS, st.booleans()), max_size=8))
def test_what_a_versions_containers_do_is_what_their_reports_say(
    reports: list[tuple[str, dict[str, tuple[str, ContainerState, int]], bool]],
) -> None:
    """However they come, go, move and change, and whichever node reports them."""
    index, last = ContainerIndex(), dict[str, list[ContainerReport]]()
    for node, said, moves in reports:
        after = [
            container(name, version, state=state, running=running, slots=4)
            for name, (version, state, running) in said.items()
        ]
        index.replace(node, last.get(node, ()), after)
        last[node] = after
        if moves:
            index.move(after, [MovingContainer(id=one.id, running=3, age_s=9.0, idle_s=0.0) for one in after])
        for version in ("ver_1", "ver_2"):
            live = [found.report for found in index.of(version) if found.report.state in LIVE]
            load = index.load(version)
            assert (load is None) is (version not in index.versions())
            if load is not None:
                assert (load.containers, load.running) == (len(live), sum(each.running for each in live))


def test_what_an_engine_tells_moves() -> None:
    """It is new with each report, and decisions go by it."""
    index, there = ContainerIndex(), [container("c1", engine=EngineReport(running=1))]
    index.replace("n1", [], there)
    index.move(there, [MovingContainer(id="c1", running=1, age_s=9.0, idle_s=0.0, engine=EngineReport(waiting=2))])

    found = index.get("c1")
    assert found is not None
    assert found.engine == EngineReport(waiting=2)
