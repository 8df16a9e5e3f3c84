"""The fronts for clients of other platforms, composed."""

from __future__ import annotations

import sys

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.front_wiring import GrpcAddress, GrpcFront
from pilotlight_gateway.http_wiring import wire_models
from tests.gateway.world import World


async def test_a_missing_extra_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setitem(sys.modules, "pilotlight_gateway.grpc_front.grpc_listener", None)
    parts = world.services.parts()
    front = GrpcFront(parts, wire_models(parts), GrpcAddress("127.0.0.1", 1))
    with pytest.raises(BadInput, match=r"is not installed: pip install 'pilotlight\[grpc\]'"):
        async with front.running():
            pass


def test_statistics_are_of_both_listeners(world: World) -> None:
    """One gateway counts once."""
    parts = world.services.parts()
    assert wire_models(parts).calls.counts is parts.counts
