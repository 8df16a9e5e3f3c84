"""What the tests of nodes have in common."""

from __future__ import annotations

import pytest

from pilotlight_gateway.tenancy.registry_port import MemoryRegistry


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry()
