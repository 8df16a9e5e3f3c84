"""The fakes of the log of events."""

from __future__ import annotations

from pilotlight_core.host.events.event_log import MemoryEventLog, SilentEventLog
from pilotlight_core.model.messages.logs import EventKind, PlatformEvent

EVENT = PlatformEvent(at=1.0, kind=EventKind.ROLLOUT_STEP, says="Step 1.")


async def test_what_is_stored_twice_under_a_name_is_there_once() -> None:
    log = MemoryEventLog()
    for name in ("a", "a", "b"):
        await log.store(EVENT, name)
    log.note(EVENT)
    assert log.events == [EVENT] * 3


async def test_a_silent_one_takes_everything() -> None:
    log = SilentEventLog()
    log.note(EVENT)
    await log.store(EVENT, "a")
