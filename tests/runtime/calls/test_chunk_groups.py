"""Chunks of one turn for one gateway."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import ChunkGroup, ChunkRow
from pilotlight_runtime.calls.chunk_groups import GROUP_BYTES, GROUP_CHUNKS, GroupDraft


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
