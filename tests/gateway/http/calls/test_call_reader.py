"""Calls are made of requests."""

from __future__ import annotations

import time

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.values import TooManyValues
from pilotlight_gateway.bodies.body_codec import BodyCodec
from pilotlight_gateway.bodies.body_work import AT_ONCE_BYTES
from pilotlight_gateway.http.calls.call_head import CallHead
from pilotlight_gateway.http.calls.call_reader import CallReader
from pilotlight_gateway.http.protocol.http_exchange import Exchange
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.tenancy.scheduling_class import SchedulingClass
from tests.gateway.world import World, function


def reader_of(world: World) -> CallReader:
    services = world.services
    codec = BodyCodec(services.validators, services.workers, services.budget)
    return CallReader(services.registry, VersionSchemas(services.blobs), codec, services.recorder, time.monotonic)


async def send(_: object) -> None:
    """Nothing is sent."""


async def test_a_call_has_the_time_and_class_of_its_tenant(world: World) -> None:
    """At once and by a worker alike: what the tier allows bounds what was asked for."""
    (version,) = world.deploy(function())
    request, head = Exchange({}, send, 100.0), CallHead({b"pilotlight-priority": b"batch"}, "shop.hello", b"")
    tight = SchedulingClass(longest_s=5.0, weight=3.0)
    asked, call = reader_of(world).prepare_now(request, head, version, b'{"input": {"name": "x"}}', tight)
    assert (call.deadline_at, call.scheduling, call.priority.value) == (105.0, tight, "batch")
    assert asked.input == {}
    _, same = await reader_of(world).prepare(request, head, version, b'{"input": {"name": "x"}}')
    assert same.input == call.input
    with pytest.raises(BadInput, match="deadline_ms"):
        reader_of(world).prepare_now(request, head, version, b'{"input": {"name": "x"}, "deadline_ms": 6000}', tight)


async def test_what_takes_long_is_not_read_at_once(world: World) -> None:
    (version,) = world.deploy(function())
    request, head = Exchange({}, send, 100.0), CallHead({}, "shop.hello", b"")
    with pytest.raises(TooManyValues):
        reader_of(world).prepare_now(request, head, version, b" " * (AT_ONCE_BYTES + 1), SchedulingClass())
