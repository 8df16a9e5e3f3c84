"""What tests of the dashboard share."""

from __future__ import annotations

import pytest

from tests.gateway.dashboard.site import Site
from tests.gateway.world import World


@pytest.fixture
def site(world: World) -> Site:
    """A dashboard over a whole HTTP side."""
    return Site(world)
