"""What a leader of another release reads of a function's memory."""

from __future__ import annotations

import msgspec

from pilotlight_autoscaler.policy.prediction.memory_record import MemoryRecord


def test_what_a_later_release_adds_is_ignored() -> None:
    """A leader that goes back to an older release keeps what it knows of."""
    stored = msgspec.msgpack.encode({"minute": 5, "needed": 2, "moods": [1, 2]})

    assert msgspec.msgpack.decode(stored, type=MemoryRecord) == MemoryRecord(minute=5, needed=2)


def test_what_nobody_knows_takes_no_room() -> None:
    """A thousand functions that were called once are as many records."""
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(MemoryRecord(minute=5))) == {"minute": 5}
