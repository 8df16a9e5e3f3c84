"""The values that a fleet is made of."""

from __future__ import annotations

import pytest

from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import units_of


@pytest.mark.parametrize(("mib", "units"), [(1, 1), (240, 1), (241, 2), (15_360, 64), (15_361, 65)])
def test_memory_in_64ths(mib: int, units: int) -> None:
    """Rounded up; more than the device has is more than 64."""
    assert units_of(mib, standard()["T4"]) == units
