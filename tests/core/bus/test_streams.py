"""The platform's streams: made once, brought up to date, bounded."""

from __future__ import annotations

import asyncio

import pytest

from pilotlight_core.bus import Bus, BusError, StreamLimits
from pilotlight_core.bus.streams import DEFAULT_LIMITS, stream_configs
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Cancel


def test_every_stream_is_bounded() -> None:
    """Nothing may grow for ever."""
    for config in stream_configs(DEFAULT_LIMITS):
        assert config["max_bytes"] > 0
        assert config.get("max_age") or config.get("max_msgs_per_subject") == 1


async def test_ensuring_again_changes_nothing_and_new_limits_are_taken_over(bus: Bus) -> None:
    """It can be repeated, and changed limits become the server's."""
    await bus.ensure_streams()
    changed = stream_configs(StreamLimits(logs_batches_per_function=19_999))[-1]

    await bus.jetstream.ensure_stream(changed)
    await bus.ensure_streams()


async def test_what_no_stream_takes_is_refused_in_time(bus: Bus) -> None:
    """A subject outside all streams is tried for as long as asked, then refused."""
    async with asyncio.timeout(30):
        with pytest.raises(BusError):
            await bus.store(f"nowhere.{token()}", Cancel(call_id="x"), id="1", timeout=0.2)
