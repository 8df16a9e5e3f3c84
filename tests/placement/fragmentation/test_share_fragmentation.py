"""What a device can expect to carry, against the recurrence done by hand and what must hold for any mix."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.fragmentation import share_fragmentation
from pilotlight_placement.fragmentation.share_fragmentation import ROWS, expected_loads
from tests.example_counts import examples


def test_two_offers_wait_for_what_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """K_2 by hand: after 60 nothing fits (60), after 50 another 50 may come (50 + 25); 55 rows hold the half alone."""
    monkeypatch.setattr(share_fragmentation, "HORIZON", 2)
    loads = expected_loads({50: 1.0, 60: 1.0})

    whole = 0.5 * 60 + 0.5 * 75
    assert loads[55] == pytest.approx(0.75 * 50 / whole)
    assert loads[49] == 0


def test_what_leaves_a_useful_rest_is_worth_it() -> None:
    """Halves fill a device: a half of it is worth its half, and a little less is worth nothing."""
    loads = expected_loads({ROWS // 2: 1.0})

    assert loads[ROWS] == 1
    assert loads[ROWS // 2] == pytest.approx(0.5)
    assert loads[ROWS // 2 - 1] == 0


def test_what_only_whole_devices_use_is_worth_nothing_once_it_is_begun() -> None:
    """Anything less than all of it."""
    loads = expected_loads({ROWS: 1.0})

    assert (loads[ROWS - 1], loads[ROWS]) == (0, 1)


@given(sizes=st.dictionaries(st.integers(1, ROWS), st.floats(0.01, 5), min_size=1, max_size=8))
@examples(40)
def test_more_room_never_expects_less(sizes: dict[int, float]) -> None:
    """The table rises from 0 to 1, whatever is asked for."""
    loads = expected_loads(sizes)

    assert (loads[0], loads[ROWS]) == (0, 1)
    assert all(low <= high + 1e-9 for low, high in pairwise(loads))
