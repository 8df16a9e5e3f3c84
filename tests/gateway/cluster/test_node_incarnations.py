"""Which incarnation of a node's agent is the present one, and which counts as gone."""

from __future__ import annotations

from pilotlight_gateway.cluster.node_incarnations import LOST_AFTER_S, GoneNode, NodeIncarnations


def names(gone: list[GoneNode]) -> list[tuple[str, str]]:
    return [(node.node, node.instance) for node in gone]


def test_a_new_incarnation_ends_the_old_one_for_certain() -> None:
    """Its late messages are recognised."""
    nodes = NodeIncarnations()
    assert nodes.seen("n1", "i1", 0.0) is None
    gone = nodes.seen("n1", "i2", 1.0)
    assert gone is not None
    assert (gone.node, gone.instance) == ("n1", "i1")
    assert nodes.is_former("n1", "i1")
    assert nodes.seen("n1", "i1", 1.1) is None
    assert nodes.current("n1") == "i2"


def test_a_silent_node_is_lost_once_and_may_come_back() -> None:
    """Silence proves nothing: it is the same incarnation when it speaks again."""
    nodes = NodeIncarnations()
    nodes.seen("n1", "i1", 0.0)
    for second in range(int(LOST_AFTER_S) + 1):
        assert nodes.lost(float(second)) == []
    assert names(nodes.lost(LOST_AFTER_S + 0.5)) == [("n1", "i1")]
    assert nodes.lost(LOST_AFTER_S + 1.0) == []
    assert nodes.current("n1") is None
    assert nodes.seen("n1", "i1", LOST_AFTER_S + 1.2) is None
    assert nodes.current("n1") == "i1"


def test_an_incarnation_that_was_lost_is_not_told_twice() -> None:
    """Its successor ends it too, but that is known already."""
    nodes = NodeIncarnations()
    nodes.seen("n1", "i1", 0.0)
    nodes.lost(0.0)
    nodes.stopped("n1", "i1")
    assert nodes.seen("n1", "i2", 1.0) is None
    assert nodes.is_former("n1", "i1")


def test_a_process_that_stood_still_loses_nobody() -> None:
    """After a pause of this process everybody seems silent: it has not read what they said."""
    nodes = NodeIncarnations()
    nodes.seen("n1", "i1", 0.0)
    nodes.lost(0.5)
    assert nodes.lost(60.0) == []
    for tenth in range(1, 91):
        assert nodes.lost(60.0 + tenth / 10) == []
    assert names(nodes.lost(60.0 + LOST_AFTER_S)) == [("n1", "i1")]


def test_an_agent_that_says_goodbye_is_gone_at_once() -> None:
    """Only if it is the present one."""
    nodes = NodeIncarnations()
    nodes.seen("n1", "i1", 0.0)
    assert nodes.stopped("n1", "i0") is None
    gone = nodes.stopped("n1", "i1")
    assert gone is not None
    assert gone.instance == "i1"
    assert nodes.current("n1") is None


def test_a_node_that_is_gone_is_forgotten_after_a_while() -> None:
    """A fleet whose nodes come and go under new names does not fill the memory; one that speaks is known."""
    nodes, rarely = NodeIncarnations(), NodeIncarnations()  # `rarely` never asks who is lost
    for second in range(4 * 3_600):
        at = float(second)
        for known in (nodes, rarely):
            if second % 60 == 0:
                known.seen(f"spot-{second}", "i1", at)
                known.seen(f"spot-{second}", "i2", at)
                known.seen("stays", "i1", 0.0)
                known.forget(at)
            known.seen("stays", "i2", at)
        nodes.lost(at)

    for known in (nodes, rarely):
        assert all(len(held) <= 64 for held in (known._instances, known._seen_at, known._former, known._last_seen_at))
        assert known.current("stays") == "i2"
        assert known.is_former("stays", "i1")


def test_what_is_gone_is_known_afterwards_too() -> None:
    """Replaced, stopped or silent; of a stranger nothing is known, and who comes back is not gone."""
    nodes = NodeIncarnations()
    assert not nodes.is_gone("n1", "i1")
    nodes.seen("n1", "i1", 0.0)
    assert not nodes.is_gone("n1", "i1")
    nodes.stopped("n1", "i1")
    assert nodes.is_gone("n1", "i1")
    nodes.seen("n1", "i1", 1.0)
    assert not nodes.is_gone("n1", "i1")
    nodes.seen("n1", "i2", 2.0)
    assert nodes.is_gone("n1", "i1")
    assert not nodes.is_gone("n1", "i2")
