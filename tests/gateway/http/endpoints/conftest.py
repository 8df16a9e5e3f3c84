"""What tests of several endpoints share."""

from __future__ import annotations

import pytest

from pilotlight_gateway.fleet.fleet_inventory import SURE_AFTER_S, FleetPlacements
from pilotlight_gateway.fleet.fleet_view import FleetView
from tests.builders.nodes import gpu_node
from tests.gateway.world import Clock, World


@pytest.fixture
def fleet(world: World) -> FleetPlacements:
    """The gateway has heard of one H100 and one CPU slot."""
    view = FleetView()
    view.on_report(gpu_node(zone="a"), 0.0)
    placements = world.services.placements = FleetPlacements(view, Clock(SURE_AFTER_S))
    return placements
