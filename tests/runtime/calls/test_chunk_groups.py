"""Chunks of one turn for one gateway."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import ChunkGroup, ChunkRow
from pilotlight_runtime.calls.chunk_groups import (
    CHUNKS_KEPT_BYTES,
    CHUNKS_KEPT_S,
    GROUP_BYTES,
    GROUP_CHUNKS,
    GroupDraft,
    SentChunks,
)


def test_chunks_of_several_calls_share_a_message() -> None:
    """Each call has a row, in which its chunks are in order; afterwards nothing waits."""
    draft = GroupDraft()
    for call, grant, seq, data in (("a", 1, 4, b"4"), ("b", 2, 1, b"1"), ("a", 1, 5, b"5")):
        assert not draft.add(call, grant, seq, (data,))

    assert draft.take() == ChunkGroup(rows=(ChunkRow("a", 1, 4, (b"4", b"5")), ChunkRow("b", 2, 1, (b"1",))))
    assert draft.take() is None


def test_a_group_is_full_by_its_chunks_or_its_bytes() -> None:
    """Whichever comes first; the one that makes it full is in it."""
    draft = GroupDraft()
    assert [draft.add("a", 1, seq, (b"",)) for seq in range(1, GROUP_CHUNKS + 1)].index(True) == GROUP_CHUNKS - 1
    draft.take()
    assert not draft.add("a", 1, 1, (bytes(GROUP_BYTES - 1),))
    assert draft.add("a", 1, 2, (b"x",))


def test_a_call_that_was_granted_anew_has_the_chunks_of_its_present_grant() -> None:
    """Its origin has no ear for others."""
    draft = GroupDraft()
    draft.add("a", 1, 7, (b"old",))
    draft.add("a", 2, 1, (b"new",))

    assert draft.take() == ChunkGroup(rows=(ChunkRow("a", 2, 1, (b"new",)),))


def test_what_was_sent_is_kept_until_it_is_passed_on() -> None:
    """Whole rows; of a newer start of the call nothing of the one before."""
    sent, one, two = SentChunks(), ChunkRow("a", 1, 1, (b"1", b"2")), ChunkRow("a", 1, 3, (b"3",))
    sent.keep("gw1", one, 0.0)
    sent.keep("gw1", two, 0.0)
    assert sent.behind("a", 0) == ("gw1", [one, two])
    sent.passed_on("a", 1)
    assert sent.behind("a", 1) == ("gw1", [one, two])
    sent.passed_on("a", 2)
    assert sent.behind("a", 2) == ("gw1", [two])
    assert sent.behind("a", 1) == ("gw1", [])  # the second one is gone, and a stream has no holes
    sent.keep("gw2", ChunkRow("a", 2, 1, (b"x",)), 0.0)
    assert sent.behind("a", 0) == ("gw2", [ChunkRow("a", 2, 1, (b"x",))])
    sent.passed_on("a", 1)
    sent.passed_on("b", 1)
    assert (len(sent), sent.behind("a", 0)) == (0, ("", []))


def test_what_was_sent_is_kept_within_bounds() -> None:
    """That which has been silent for longest goes, by its age or for the room of others."""
    sent, large = SentChunks(), bytes(CHUNKS_KEPT_BYTES // 3)
    for at, call in enumerate(("a", "b", "a", "c")):
        sent.keep("gw1", ChunkRow(call, 1, at + 1, (large,)), float(at))
    assert [bool(sent.behind(call, 0)[0]) for call in "abc"] == [False, False, True]
    sent.sweep(3.0 + CHUNKS_KEPT_S)
    assert len(sent) == 1
    sent.sweep(3.1 + CHUNKS_KEPT_S)
    assert len(sent) == 0
    sent.keep("gw1", ChunkRow("d", 1, 1, (large, large)), 0.0)
    assert len(sent) == 1
