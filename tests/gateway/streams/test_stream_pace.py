"""Gaps between chunks, and whether a stream keeps its level."""

from __future__ import annotations

from pilotlight_gateway.streams.stream_pace import StreamPace


def test_chunks_that_come_together_share_their_gap() -> None:
    pace = StreamPace(80.0, 1.0, None)
    pace.note(1.04, 4)
    pace.note(1.05, 1)
    assert [(round(gap, 6), chunks) for gap, chunks in pace.gaps] == [(10.0, 4), (10.0, 1)]
    assert (pace.first_chunk_ms, pace.seen, pace.late) == (80.0, 5, 0)


def test_one_late_chunk_of_twenty_is_within_the_level() -> None:
    pace = StreamPace(1.0, 0.0, 60.0)
    pace.note(0.95, 19)
    pace.note(1.05, 1)
    assert pace.keeps_gaps
    pace.note(1.15, 1)
    assert not pace.keeps_gaps
