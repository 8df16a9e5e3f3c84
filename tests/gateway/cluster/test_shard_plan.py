"""Who is the home of what: every gateway alone decides, and together they must agree."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.cluster.shard_plan import (
    BeginShard,
    GatewayMember,
    LeaveShard,
    MoveShard,
    OwnedShard,
    ShardRecord,
    ShardStep,
    TakeShard,
    heir_of,
    steps,
)
from tests.example_counts import examples


def member(name: str, epoch: int = 1) -> GatewayMember:
    return GatewayMember(name, f"{name}-{epoch}", epoch)


def owned(home: GatewayMember, revision: int = 1) -> OwnedShard:
    return OwnedShard(record=ShardRecord(home=home), revision=revision)


NAMES = st.lists(st.sampled_from([f"gw{n}" for n in range(8)]), min_size=1, unique=True)


@given(NAMES)
def test_everybody_computes_the_same_heir(names: list[str]) -> None:
    """Whatever order they heard of each other in."""
    members = [member(name) for name in names]
    for shard in range(SHARDS):
        assert heir_of(shard, members) == heir_of(shard, members[::-1])


@given(NAMES, st.data())
def test_who_goes_moves_only_its_own_shards(names: list[str], data: st.DataObject) -> None:
    """The heirs of all others stay."""
    members = [member(name) for name in names]
    gone = data.draw(st.sampled_from(members))
    left = [m for m in members if m != gone]
    for shard in range(SHARDS):
        before, after = heir_of(shard, members), heir_of(shard, left)
        assert after == before or before == gone


def test_the_shards_are_divided_fairly() -> None:
    """Four gateways: none has less than half or more than twice its part."""
    members = [member(f"gw{n}") for n in range(4)]
    counts = Counter(heir.name for shard in range(SHARDS) if (heir := heir_of(shard, members)) is not None)
    assert set(counts) == {"gw0", "gw1", "gw2", "gw3"}
    assert all(SHARDS / 8 <= count <= SHARDS / 2 for count in counts.values())


def test_a_shard_without_a_living_home_is_taken_by_its_heir() -> None:
    """With no record, with that of a dead gateway, and with that of our own former life."""
    me = member("gw0", epoch=2)
    for records in ({}, {0: owned(member("dead"), 7)}, {0: owned(member("gw0", epoch=1), 7)}):
        found = steps(records, [me], me, {}, leaving=False)
        assert found[0] == TakeShard(0, records[0].revision if records else 0)
        assert len(found) == SHARDS


def test_what_was_handed_to_us_begins_once() -> None:
    """By the revision of its record: that is the epoch."""
    me = member("gw0")
    record = owned(me, 5)
    assert BeginShard(0, record) in steps({0: record}, [me], me, {}, leaving=False)
    assert BeginShard(0, record) in steps({0: record}, [me], me, {0: 4}, leaving=False)
    assert not any(isinstance(s, BeginShard) for s in steps({0: record}, [me], me, {0: 5}, leaving=False))


def test_who_leaves_hands_everything_over() -> None:
    """And takes nothing; alone, it keeps what it has."""
    me, other = member("gw0"), member("gw1")
    records = {shard: owned(me, 1) for shard in range(SHARDS)}
    acting = dict.fromkeys(range(SHARDS), 1)

    found = steps(records, [me, other], me, acting, leaving=True)

    assert all(isinstance(step, MoveShard) and step.heir == other for step in found)
    assert len(found) == SHARDS
    assert steps(records, [me], me, acting, leaving=True) == []
    assert steps({}, [me], me, {}, leaving=True) == []


def test_who_leaves_in_the_middle_of_a_move_goes_on_with_it() -> None:
    """It has stopped acting, and its record was not written: it begins nothing that it would have to end at once."""
    me, other = member("gw0"), member("gw1")
    record = owned(me, 5)

    for acting in ({}, {0: 4}):
        assert steps({0: record}, [me, other], me, acting, leaving=True) == [MoveShard(0, record, other)]
    assert steps({0: record}, [me], me, {}, leaving=True) == []


def test_who_was_replaced_stops() -> None:
    """The record names another gateway, or nobody who lives."""
    me, other = member("gw0"), member("gw1")
    assert LeaveShard(0) in steps({0: owned(other, 9)}, [me, other], me, {0: 1}, leaving=False)
    assert LeaveShard(0) in steps({0: owned(member("dead"), 9)}, [me], me, {0: 1}, leaving=False)


class Board:
    """The records, and gateways that act on them one after the other, by compare-and-set."""

    def __init__(self) -> None:
        self.living: dict[str, GatewayMember] = {}
        self.acting: dict[str, dict[int, int]] = {}
        self.records: dict[int, OwnedShard] = {}
        self._revision = 0

    def join(self, name: str, epoch: int) -> None:
        """A gateway begins; under a name that is known, its former life ends."""
        self.living[name], self.acting[name] = member(name, epoch=epoch), {}

    def die(self, name: str) -> None:
        del self.living[name], self.acting[name]

    def round(self) -> None:
        """Everybody does what it must."""
        for name, me in self.living.items():
            for step in steps(self.records, list(self.living.values()), me, self.acting[name], leaving=False):
                self._do(self.acting[name], me, step)

    def homes(self, shard: int) -> list[str]:
        return [name for name, acting in self.acting.items() if shard in acting]

    def _do(self, acting: dict[int, int], me: GatewayMember, step: ShardStep) -> None:
        match step:
            case TakeShard(shard, expected):
                assert (self.records[shard].revision if shard in self.records else 0) == expected
                acting[shard] = self._write(shard, me)
            case BeginShard(shard, found):
                acting[shard] = found.revision
            case MoveShard(shard, _, heir):
                del acting[shard]
                self._write(shard, heir)
            case LeaveShard(shard):
                del acting[shard]

    def _write(self, shard: int, home: GatewayMember) -> int:
        self._revision += 1
        self.records[shard] = owned(home, self._revision)
        return self._revision


@examples(50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=12))
def test_after_any_history_every_shard_finds_one_home(history: list[tuple[bool, int]]) -> None:
    """Gateways join and die while they take, begin and hand over; soon after, each shard is with its heir alone."""
    board = Board()
    board.join("gw0", 1)
    for epoch, (joins, number) in enumerate(history, 2):
        if joins:
            board.join(f"gw{number}", epoch)
        elif len(board.living) > 1:
            board.die(sorted(board.living)[number % len(board.living)])
        board.round()
    for _ in range(3):
        board.round()

    for shard in range(SHARDS):
        heir = heir_of(shard, list(board.living.values()))
        assert heir is not None
        assert board.homes(shard) == [heir.name]
