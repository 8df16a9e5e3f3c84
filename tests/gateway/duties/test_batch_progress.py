"""How far a batch is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.records.batches import BatchChunk, ItemCounts
from pilotlight_core.model.records.jobs import BlobRef
from pilotlight_gateway.duties.batch_progress import CHUNKS_AT_MOST, OUT_AT_MOST, BatchProgress

STATES = ("succeeded", "failed", "cancelled", "expired")


def chunks_of(*counts: int) -> list[BatchChunk]:
    return [BatchChunk(BlobRef("", 0), sum(counts[:number]), count) for number, count in enumerate(counts)]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.randoms())
def test_every_item_is_counted_once_however_they_end(counts: list[int], chance: object) -> None:
    """What is settled never goes back, and is a prefix; at the end it is everything."""
    shuffle = getattr(chance, "choice")  # noqa: B009 - hypothesis gives no type for it
    progress = BatchProgress(chunks_of(*counts), 0, ItemCounts())
    waiting: dict[int, list[str]] = {}
    ended = ItemCounts()
    while not (progress.all_begun and not progress.out and not any(waiting.values())):
        before = (progress.settled_chunks, progress.settled)
        if progress.may_begin and not progress.all_begun and shuffle((True, False)):
            number = progress.begin()
            waiting[number] = [f"{number}.{item}" for item in range(counts[number])]
        elif any(waiting.values()) and progress.has_room and shuffle((True, False)):
            number = next(number for number, left in waiting.items() if left)
            job = waiting[number].pop()
            assert not progress.knows(job, number)
            progress.submit(job, number)
            assert progress.knows(job, number)
        elif jobs := progress.jobs():
            job, state = shuffle(jobs), shuffle(STATES)
            assert progress.end(job, state)
            assert not progress.end(job, state)
            ended = ended.plus(state)
        assert progress.settled_chunks >= before[0]
        assert progress.settled.ended == sum(counts[: progress.settled_chunks])
        assert progress.counts == ended
        assert progress.next_chunk - progress.settled_chunks <= CHUNKS_AT_MOST

    assert progress.settled == progress.counts == ended
    assert progress.settled_chunks == len(counts)
    assert progress.submitted == ended.ended == sum(counts)


def test_it_goes_on_where_it_was_settled() -> None:
    """Whoever drives it next begins with the first chunk that was not."""
    progress = BatchProgress(chunks_of(3, 4, 5), 2, ItemCounts(succeeded=7))

    assert progress.submitted == 7
    assert progress.begin() == 2
    assert progress.all_begun


def test_only_so_many_are_out() -> None:
    """The others wait in the batch, not in the queue of its function."""
    progress = BatchProgress(chunks_of(OUT_AT_MOST + 1), 0, ItemCounts())
    progress.begin()
    for number in range(OUT_AT_MOST):
        assert progress.has_room
        progress.submit(str(number), 0)

    assert not progress.has_room
    progress.end("0", "succeeded")
    assert progress.has_room
