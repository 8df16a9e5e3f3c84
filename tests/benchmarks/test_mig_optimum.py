"""The exact long run of two devices, where it is known by a formula, and the best policy against the others."""

from __future__ import annotations

import pytest

from benchmarks.mig_churn import POLICIES
from benchmarks.mig_optimum import DEVICES, Chain, chain_of
from pilotlight_placement.hardware.catalogue import family
from pilotlight_placement.hardware.geometry import layouts

SEVEN = family("seven")


def chain(rates: dict[str, float]) -> Chain:
    """Two devices to which profiles come at these rates."""
    return Chain(
        found=tuple(sorted(layouts(SEVEN, list(rates)))),
        rates=tuple(rates.get(profile.key, 0.0) for profile in SEVEN.profiles),
    )


def mix_of(made: Chain) -> tuple[float, ...]:
    return tuple(rate / sum(made.rates) for rate in made.rates)


@pytest.mark.parametrize("load", [0.5, 2.0])
def test_whole_devices_alone_are_accepted_by_erlangs_formula(load: float) -> None:
    """Two servers without a queue."""
    blocked = load**2 / 2 / (1 + load + load**2 / 2)

    assert chain({"7g": load}).settle() == pytest.approx(1 - blocked, abs=1e-5)


def test_no_policy_is_better_than_the_best() -> None:
    """And where two sizes compete some choice is worse."""
    made = chain({"7g": 0.5, "4g": 0.5, "3g": 1.0})
    best = made.settle()
    found = {policy: made.settle(made.choices(policy, mix_of(made))) for policy in POLICIES}

    assert all(value <= best + 1e-5 for value in found.values())
    assert min(found.values()) < best - 1e-4


def test_a_cell_asks_for_its_load() -> None:
    """Memory slices at a time, by those of two devices; the six profiles make 723 layouts."""
    made = chain_of("uniform", 0.9)
    asked = sum(rate * profile.size for rate, profile in zip(made.rates, SEVEN.profiles, strict=True))

    assert asked == pytest.approx(0.9 * DEVICES * SEVEN.slots)
    assert len(made.found) == 723
