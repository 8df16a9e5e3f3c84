"""The values that a fleet is made of."""

from __future__ import annotations

import pytest

from pilotlight_placement.hardware.catalogue import standard
from pilotlight_placement.hardware.node import units_of


@pytest.mark.parametrize(("mib", "units"), [(1, 1), (15, 1), (16, 2), (15_360, 1000), (15_361, 1001)])
def test_memory_in_thousandths(mib: int, units: int) -> None:
    """Rounded up; more than the device has is more than 1000."""
    assert units_of(mib, standard()["T4"]) == units
