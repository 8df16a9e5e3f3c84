"""What is kept in a host's memory is worth what it saves, by what it takes."""

from __future__ import annotations

import pytest

from pilotlight_core.model.scaling.warm_worth import HALVES_S, worth

GIB = 2**30


def test_it_is_the_load_that_it_saves_for_each_gib() -> None:
    """Twice the load, twice the chance or half the memory: twice the worth."""
    assert worth(4.0, 0.5, 2 * GIB) == 1.0
    assert worth(8.0, 0.5, 2 * GIB) == worth(4.0, 1.0, 2 * GIB) == worth(4.0, 0.5, GIB) == 2.0


def test_it_halves_while_nobody_needs_it() -> None:
    """A chance was told of the next minute, and that has passed."""
    assert worth(4.0, 1.0, GIB, HALVES_S) == 2.0
    assert worth(4.0, 1.0, GIB, 2 * HALVES_S) == 1.0


@pytest.mark.parametrize(("load_s", "likelihood", "size"), [(-1.0, 1.0, GIB), (1.0, -1.0, GIB), (0.0, 1.0, 0)])
def test_nonsense_is_worth_nothing(load_s: float, likelihood: float, size: int) -> None:
    """And no size divides by nothing."""
    assert worth(load_s, likelihood, size) == 0.0
    assert worth(1.0, 9.0, 0) == 1024.0
