"""What a gateway knows of others, from memory."""

from __future__ import annotations

from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.cluster.shard_ownership import ShardOwner
from pilotlight_gateway.cluster.shard_plan import GatewayMember
from pilotlight_gateway.cluster.shard_table import EPOCHS_KNOWN, ShardTable


class OurLease:
    """Holds until a test says that it does not."""

    epoch, holds = 5, True

    def valid(self, at: float) -> bool:
        return self.holds


ONE, TWO = GatewayMember("one", "one-1", 5), GatewayMember("two", "two-1", 6)


def test_a_gateway_acts_for_what_it_has_taken_while_its_lease_holds() -> None:
    """By its own clock, whatever others believe."""
    lease = OurLease()
    table = ShardTable("one-1", lease)
    table.acting[3] = 8
    assert (table.mine(3, 0.0), table.mine(4, 0.0), table.epoch) == (8, None, 5)
    lease.holds = False
    assert table.mine(3, 0.0) is None


def test_it_tells_who_is_gone() -> None:
    """Once; itself it never takes for gone."""
    table = ShardTable("one-1", OurLease())
    assert table.see_members([TWO, ONE]) == frozenset()
    assert (table.see_members([ONE, TWO]), table.others(), table.newest) == (None, ["two-1"], 6)
    assert table.see_members([]) == frozenset({"two-1"})
    assert (table.others(), table.process_of(6)) == ([], None)


def test_it_knows_whose_calls_carry_an_epoch() -> None:
    """As long as that process lives; of very many epochs the oldest are forgotten."""
    table = ShardTable("one-1", OurLease())
    table.see_members([ONE, TWO])
    assert (table.process_of(5), table.process_of(6), table.process_of(7)) == ("one-1", "two-1", None)
    for epoch in range(100, 100 + EPOCHS_KNOWN):
        table.see_members([ONE, GatewayMember("two", "two-1", epoch)])
    assert len(table._instances) == EPOCHS_KNOWN


def test_it_tells_which_shards_have_another_home() -> None:
    """A home that is gone is no news until there is another; it is settled once each shard has had one."""
    table = ShardTable("one-1", OurLease())
    owners: list[ShardOwner | None] = [None] * SHARDS
    owners[2] = ShardOwner("two-1", 9)
    assert table.see_owners(owners) == {2}
    assert (table.owner(2), table.home_under(9), table.home_under(8)) == (owners[2], (2, "two-1"), None)
    assert table.see_owners([None] * SHARDS) == frozenset()
    assert not table.is_settled
    table.see_owners([ShardOwner("one-1", 10)] * SHARDS)
    table.see_owners([None] * SHARDS)
    assert table.is_settled
