"""Records of launches: fenced, and with all that belongs to them."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.pools.launch_book import MOST_FORMER, Deposed, LaunchBook
from pilotlight_core.model.errors import Unauthenticated
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord, NodeState
from pilotlight_core.model.records.pools import LaunchState
from pilotlight_gateway.nodes.join_tokens import use_join_token
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.pools import launch

NOW = 1_000.0


@pytest.fixture
def registry() -> MemoryRegistry:
    """Without anything."""
    return MemoryRegistry()


def book(registry: MemoryRegistry, epoch: int = 1) -> LaunchBook:
    return LaunchBook(registry, lambda: epoch)


async def test_a_slot_is_had_once(registry: MemoryRegistry) -> None:
    """Two controllers that decide the same at once launch one machine."""
    made = await book(registry).create(launch(1, id="mine"))
    assert made.epoch == 1
    assert await book(registry).create(launch(1, id="mine")) == made
    with pytest.raises(Deposed):
        await book(registry, 2).create(launch(1, id="theirs"))


async def test_an_older_leader_changes_nothing(registry: MemoryRegistry) -> None:
    """A later one does, and what is gone is nobody's."""
    made = await book(registry, 2).create(launch(1))
    with pytest.raises(Deposed):
        await book(registry, 1).move(made, LaunchState.ENDING, NOW)
    await book(registry, 3).move(made, LaunchState.DRAINING, NOW, "so it is")
    (after,) = registry.launches()
    assert (after.state, after.epoch, after.changed_at, after.reason) == (LaunchState.DRAINING, 3, NOW, "so it is")
    await book(registry, 3).forget(after)
    with pytest.raises(Deposed):
        await book(registry, 3).move(after, LaunchState.ENDING, NOW)


async def test_an_older_leader_forgets_nothing(registry: MemoryRegistry) -> None:
    """What a later one has launched keeps its node and its token."""
    made = await book(registry, 2).create(launch(1))
    await book(registry, 2).issue_token(made, "eu", NOW, NOW + 60.0)
    registry.node_records[made.node] = NodeRecord(node=made.node)
    with pytest.raises(Deposed):
        await book(registry, 1).forget(made)
    assert [len(registry.join_records), len(registry.node_records), len(registry.launch_records)] == [1, 1, 1]


async def test_a_token_is_for_one_node_and_goes_with_its_machine(registry: MemoryRegistry) -> None:
    """The labels of its node are those of the pool."""
    mine = book(registry)
    made = await mine.create(launch(1, zone="b", spot=True))
    text = await mine.issue_token(made, "eu", NOW, NOW + 60.0)
    used = await use_join_token(registry, text, made.node, NOW)
    assert used.labels == NodeLabels(region="eu", zone="b", pool="l4", spot=True)
    await mine.issue_token(made, "eu", NOW, NOW + 60.0)
    registry.node_records[made.node] = NodeRecord(node=made.node)
    await mine.forget(made)
    assert [registry.join_records, registry.node_records, registry.launch_records] == [{}, {}, {}]


async def test_a_machine_joins_by_the_token_of_whichever_leader_has_launched_it(registry: MemoryRegistry) -> None:
    """Until the node is up; of many leaders the first and the last ones count."""
    made = await book(registry).create(launch(1))
    texts = [await book(registry, epoch).issue_token(made, "eu", NOW, NOW + 60.0) for epoch in range(1, 7)]
    assert len(registry.join_records) == MOST_FORMER + 1
    for text in (texts[0], *texts[-MOST_FORMER:]):
        assert (await use_join_token(registry, text, made.node, NOW)).node == made.node
    with pytest.raises(Unauthenticated):
        await use_join_token(registry, texts[1], made.node, NOW)

    await book(registry, 6).issue_token(made, "eu", NOW, NOW + 60.0)
    await book(registry, 6).drop_tokens(made)
    assert not registry.join_records


async def test_the_node_of_a_machine_that_goes_drains(registry: MemoryRegistry) -> None:
    """On record or not; once."""
    mine, made = book(registry), launch(1)
    await mine.drain_node(made)
    await mine.drain_node(made)
    assert registry.node_records[made.node].state is NodeState.DRAINING


async def test_a_joined_node_gets_the_zone_of_its_machine(registry: MemoryRegistry) -> None:
    """One that has no labels says its zone itself."""
    mine, made = book(registry), launch(1, zone="b")
    await mine.set_node_zone(made)
    assert not registry.node_records
    registry.node_records[made.node] = NodeRecord(node=made.node, labels=NodeLabels(region="eu", zone="a"))
    await mine.set_node_zone(made)
    await mine.set_node_zone(made)
    assert registry.node_records[made.node].labels == NodeLabels(region="eu", zone="b")
