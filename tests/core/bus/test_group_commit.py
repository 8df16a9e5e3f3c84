"""Writes that travel together: each a compare-and-set of its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import Bus, KvEntry, WrongRevision
from pilotlight_core.bus.group_commit import MAX_TURNS, MAX_WRITES
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import JOB_BUCKET, REGISTRY_BUCKET


async def refused(write: Awaitable[int]) -> bool:
    """Whether the write raised WrongRevision."""
    try:
        await write
    except WrongRevision:
        return True
    return False


async def test_what_is_wanted_at_once_is_stored_together(bus: Bus, other: Bus) -> None:
    """Every write has a revision of its own, under which everybody finds its value; they went as one batch."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()

    revisions = await asyncio.gather(*(group_commit.update(f"{base}.{n}", b"%d" % n, 0) for n in range(20)))

    kv = other.kv(JOB_BUCKET)
    assert [await kv.get(f"{base}.{n}") for n in range(20)] == [KvEntry(b"%d" % n, revisions[n]) for n in range(20)]
    batches = await batches_of(other, base)
    assert len(batches) == 20
    assert len(set(batches)) == 1


async def batches_of(bus: Bus, base: str) -> list[str]:
    """The batch of each record, "" for one that went alone."""
    page = await bus.jetstream.page(bucket_stream(JOB_BUCKET), key_subject(JOB_BUCKET, f"{base}.>"), 1)
    return [record.headers.get("Nats-Batch-Id", "") for record in page.records]


async def test_who_comes_in_the_next_turns_goes_along(bus: Bus, other: Bus) -> None:
    """A group waits for as long as turns of the loop bring more: five turns of two are one batch."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()
    writes = []
    for turn in range(5):
        writes += [asyncio.ensure_future(group_commit.update(f"{base}.{turn}{one}", b"x", 0)) for one in "ab"]
        await asyncio.sleep(0)

    await asyncio.gather(*writes)

    assert len(set(await batches_of(other, base))) == 1


async def test_a_group_leaves_though_somebody_comes_in_every_turn(bus: Bus, other: Bus) -> None:
    """It waits for a bounded number of turns; what comes while two are stored is another."""
    group_commit, base, count = bus.group_commit(JOB_BUCKET), token(), 3 * MAX_TURNS
    writes = []
    for number in range(count):
        writes.append(asyncio.ensure_future(group_commit.update(f"{base}.{number}", b"x", 0)))
        await asyncio.sleep(0)

    await asyncio.gather(*writes)

    batches = await batches_of(other, base)
    assert len(batches) == count
    assert Counter(batches)[batches[0]] <= MAX_TURNS + 1


@pytest.mark.parametrize("turns", [0, 1])
async def test_a_group_that_is_cancelled_before_it_leaves_holds_nobody_up(bus: Bus, turns: int) -> None:
    """As everything is when the process ends, where some still write their last words."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()
    write = asyncio.ensure_future(group_commit.update(f"{base}.k", b"x", 0))
    await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    for task in group_commit._running:
        task.cancel()

    async with asyncio.timeout(30):
        assert await write > 0


async def test_one_that_lost_does_not_cost_the_others(bus: Bus) -> None:
    """The conflicting write raises; the others of its group are stored."""
    group_commit, kv, base = bus.group_commit(JOB_BUCKET), bus.kv(JOB_BUCKET), token()
    there = await kv.create(f"{base}.there", b"1")

    created, lost, changed = await asyncio.gather(
        group_commit.update(f"{base}.new", b"a", 0),
        refused(group_commit.update(f"{base}.there", b"b", 0)),
        group_commit.update(f"{base}.there", b"c", there),
    )

    assert lost
    assert [await kv.get(f"{base}.{name}") for name in ("new", "there")] == [
        KvEntry(b"a", created),
        KvEntry(b"c", changed),
    ]


async def test_alone_it_is_a_write_as_any_other(bus: Bus) -> None:
    """With its revision, and refused without."""
    group_commit, key = bus.group_commit(JOB_BUCKET), f"{token()}.k"
    first = await group_commit.update(key, b"1", 0)
    second = await group_commit.update(key, b"2", first)

    with pytest.raises(WrongRevision):
        await group_commit.update(key, b"3", first)

    assert await bus.kv(JOB_BUCKET).get(key) == KvEntry(b"2", second)


async def test_more_than_fit_go_in_several_groups(bus: Bus) -> None:
    """None is forgotten, and none is stored twice."""
    group_commit, base, count = bus.group_commit(JOB_BUCKET), token(), 3 * MAX_WRITES + 1

    revisions = await asyncio.gather(*(group_commit.update(f"{base}.{n}", b"x", 0) for n in range(count)))

    assert len(set(revisions)) == count
    assert len(await bus.kv(JOB_BUCKET).keys(f"{base}.")) == count


async def test_a_lifetime_goes_along(bus: Bus) -> None:
    """The server gets a time-to-live of a second, in a group and alone."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()

    await asyncio.gather(*(group_commit.update(f"{base}.{n}", b"x", 0, ttl=60.0) for n in range(2)))

    page = await bus.jetstream.page(bucket_stream(JOB_BUCKET), key_subject(JOB_BUCKET, f"{base}.>"), 1)
    assert [record.headers["Nats-TTL"] for record in page.records] == ["60000ms", "60000ms"]


async def test_who_gave_up_before_it_left_is_not_written(bus: Bus) -> None:
    """Those beside it are."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()
    tasks = [asyncio.create_task(group_commit.update(f"{base}.{n}", b"x", 0)) for n in range(3)]
    asyncio.get_running_loop().call_soon(tasks[1].cancel)

    results = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(results[1], asyncio.CancelledError)
    assert await bus.kv(JOB_BUCKET).keys(f"{base}.") == [f"{base}.0", f"{base}.2"]


async def test_where_batches_are_not_allowed_each_goes_alone(bus: Bus) -> None:
    """A bucket of an older platform takes the writes one by one."""
    group_commit, base = bus.group_commit(REGISTRY_BUCKET), token()

    await asyncio.gather(*(group_commit.update(f"{base}.{n}", b"x", 0) for n in range(5)))

    assert len(await bus.kv(REGISTRY_BUCKET).keys(f"{base}.")) == 5


async def test_a_group_that_fails_in_an_unforeseen_way_is_logged(bus: Bus) -> None:
    """Its writes are repeated alone: the invalid one raises, the others are stored."""
    group_commit, base = bus.group_commit(JOB_BUCKET), token()

    with capture_logs() as lines:
        good, bad = await asyncio.gather(
            group_commit.update(f"{base}.good", b"x", 0),
            group_commit.update(f"{base}.bad", b"x", 0, ttl=float("nan")),
            return_exceptions=True,
        )

    assert isinstance(good, int)
    assert isinstance(bad, ValueError)
    assert await bus.kv(JOB_BUCKET).get(f"{base}.good") == KvEntry(b"x", good)
    assert [type(line["exc_info"]) for line in lines if "exc_info" in line] == [ValueError]
