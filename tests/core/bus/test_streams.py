"""The platform's streams: made once, brought up to date, bounded."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from structlog.testing import capture_logs

from pilotlight_core.bus import Bus, BusError, StreamLimits
from pilotlight_core.bus.streams import DEFAULT_LIMITS, stream_configs
from pilotlight_core.model import subjects
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
    changed = config_of(subjects.LOGS_STREAM, StreamLimits(logs_batches_per_function=19_999))

    await bus.jetstream.ensure_stream(changed)
    assert (await kept(bus, subjects.LOGS_STREAM))["max_msgs_per_subject"] == 19_999
    await bus.ensure_streams()
    assert (await kept(bus, subjects.LOGS_STREAM))["max_msgs_per_subject"] != 19_999


async def test_what_the_audit_log_keeps_is_changed_by_no_process(bus: Bus) -> None:
    """Whoever takes a gateway over shortens nothing; a release that would keep something else says so."""
    await bus.ensure_streams()
    before = await kept(bus, subjects.AUDIT_STREAM)
    with capture_logs() as logs:
        await bus.jetstream.ensure_stream(config_of(subjects.AUDIT_STREAM, StreamLimits(audit_days=1)))

    assert await kept(bus, subjects.AUDIT_STREAM) == before
    assert [(one["log_level"], one["stream"]) for one in logs] == [("warning", "AUDIT")]


async def test_what_a_stream_cannot_lose_again_it_keeps(bus: Bus) -> None:
    """One that was made by another release; all else of what this one wants counts."""
    name = f"TEST_{token(6)}"
    plain = {"name": name, "subjects": [f"{name}.>"], "storage": "memory", "max_bytes": 2**20}
    await bus.jetstream.ensure_stream(plain | {"allow_msg_ttl": True, "deny_delete": True})
    await bus.jetstream.ensure_stream(plain | {"allow_msg_ttl": False, "deny_delete": False, "max_bytes": 2**21})

    found = await kept(bus, name)
    assert (found["allow_msg_ttl"], found["deny_delete"], found["max_bytes"]) == (True, True, 2**21)
    await bus.jetstream.api(f"STREAM.DELETE.{name}", {})


def config_of(stream: str, limits: StreamLimits) -> dict[str, Any]:
    return next(config for config in stream_configs(limits) if config["name"] == stream)


async def kept(bus: Bus, stream: str) -> dict[str, Any]:
    """What the server has of its configuration."""
    reply = await bus.jetstream._inbox.ask(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=5.0)
    found: dict[str, Any] = json.loads(reply.data)["config"]
    return found


async def test_what_no_stream_takes_is_refused_in_time(bus: Bus) -> None:
    """A subject outside all streams is tried for as long as asked, then refused."""
    async with asyncio.timeout(30):
        with pytest.raises(BusError):
            await bus.store(f"nowhere.{token()}", Cancel(call_id="x"), id="1", timeout=0.2)
