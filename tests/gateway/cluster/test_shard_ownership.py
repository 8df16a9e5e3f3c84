"""One gateway's view of who is whose home, in memory: what drivers ask of `Shards`."""

from __future__ import annotations

import pytest

from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner, ShardOwnership


@pytest.mark.parametrize(
    ("home", "lease_holds", "epoch"),
    [
        (ShardOwner("g1", 7), True, 7),
        (ShardOwner("g1", 7), False, None),  # a paused holder wakes up, and may not act
        (ShardOwner("g2", 7), True, None),
        (None, True, None),
    ],
)
def test_a_gateway_acts_for_its_own_shards_as_long_as_its_lease_holds(
    home: ShardOwner | None, lease_holds: bool, epoch: int | None
) -> None:
    """Under the epoch of the shard's record."""
    ownership: ShardOwnership = MemoryShardOwnership(gateway="g1", home=home, lease_holds=lease_holds)

    assert ownership.owner(3) == home
    assert ownership.mine(3, 0.0) == epoch


def test_a_home_is_known_by_its_epoch() -> None:
    """As long as it is the home: of a former epoch nobody knows."""
    ownership: ShardOwnership = MemoryShardOwnership(gateway="g1", home=ShardOwner("g2", 7))

    assert ownership.home_under(7) == (0, "g2")
    assert ownership.home_under(6) is None


def test_the_others_are_those_that_live() -> None:
    """Not the gateway itself."""
    assert MemoryShardOwnership(gateway="g1", alive={"g1", "g3", "g2"}).others() == ["g2", "g3"]
