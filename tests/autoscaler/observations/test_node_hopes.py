"""What versions without a place hear of pools."""

from __future__ import annotations

from pilotlight_autoscaler.observations.node_hopes import FIRST_GUESS_S, FIRST_LOCAL_GUESS_S, AwaitedNode, NodeHopes
from pilotlight_autoscaler.policy.nodes.pool_view import PoolView
from pilotlight_core.model.api.pools.pool_terms import PoolProvider
from pilotlight_core.model.messages.node_messages import Shortage
from pilotlight_core.model.records.pools import PoolState
from pilotlight_core.model.units import GpuAsk
from pilotlight_placement.asks.ask import Ask
from tests.builders.pools import pool

NOW = 100.0
L4 = Ask(gpu=(GpuAsk("L4"),))
SHORT = Shortage(version="v1", epoch=1, reason="no place", never=False)


def hopes(**more: object) -> NodeHopes:
    record = pool()
    return NodeHopes(pools=(PoolView(record=record, digest=record.terms.digest),), **more)  # type: ignore[arg-type]


def test_a_pool_that_could_have_such_a_node_is_hope() -> None:
    """None for what no machine holds, and none in a pool that is drained or may have no node."""
    assert hopes().pool_for(L4) == "l4"
    assert not hopes().is_any(Ask(gpu=(GpuAsk("H100"),)))
    for record in (pool(state=PoolState.DRAINING), pool(most_nodes=0)):
        assert not NodeHopes(pools=(PoolView(record=record, digest=record.terms.digest),)).is_any(L4)


def test_who_waits_hears_for_which_pool_and_how_long() -> None:
    """The guess is that of the pool's other machines, if there were any."""
    awaited = {"v1": AwaitedNode(pool="l4", node="l4-n1", since=NOW - 12.0)}
    known = hopes(awaited=awaited)
    assert known.text("v1", NOW) == "waiting for a node of the pool l4, l4-n1, since 12 s"
    assert known.expected_s("v1", NOW) == FIRST_GUESS_S - 12.0
    told = known.with_hope(SHORT, NOW)
    assert (told.reason, told.room_ms) == (
        "no place; waiting for a node of the pool l4",
        (FIRST_GUESS_S - 12.0) * 1000.0,
    )

    known.start_s["l4"] = 20.0
    assert known.expected_s("v1", NOW) == 8.0
    local = pool("l4", provider=PoolProvider.LOCAL)
    assert (
        NodeHopes(pools=(PoolView(record=local),), awaited=awaited).expected_s("v1", NOW - 12.0) == FIRST_LOCAL_GUESS_S
    )


def test_a_refusal_is_told_and_others_hear_nothing() -> None:
    """What is told of them is what it was."""
    known = hopes(refused={"v1": "the pool l4 is at its limit of 1 node"})
    assert known.with_hope(SHORT, NOW).reason == "no place; the pool l4 is at its limit of 1 node"
    assert known.text("v2", NOW) == ""
    assert known.expected_s("v2", NOW) == 0.0
    assert hopes().with_hope(SHORT, NOW) is SHORT


def test_whose_hopes_are_new_is_said_once() -> None:
    """Of all others callers hear the same as before."""
    known = hopes(refused={"v1": "the pool l4 is at its limit of 1 node", "v2": "no pool has it"})
    assert known.take_changed() == {"v1", "v2"}
    assert known.take_changed() == set()

    known.refused = {"v2": "no pool has it"}
    known.awaited = {"v1": AwaitedNode(pool="l4", node="l4-n1", since=NOW)}
    assert known.take_changed() == {"v1"}
    known.awaited = {}
    assert known.take_changed() == {"v1"}
