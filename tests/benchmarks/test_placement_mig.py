"""The churn benchmark: what it counts, and that its policies are what they say."""

from __future__ import annotations

import pytest

from benchmarks.mig_churn import POLICIES, Fleet, run, whole_score
from benchmarks.placement_mig import MIXES, Job, cell_of, figures_of, play
from pilotlight_placement.hardware.catalogue import family

SEVEN = family("seven")


def fleet(*masks: int) -> Fleet:
    made = Fleet(family=SEVEN, devices=len(masks))
    for device, mask in enumerate(masks):
        made.change(device, mask)
    return made


def chosen(policy: str, profile: str, *masks: int) -> tuple[int, int] | None:
    return POLICIES[policy]()(fleet(*masks), SEVEN.by_key[profile].index)


def test_first_and_best_fit() -> None:
    """First fit takes the first device, best fit the fullest that has room, low or high."""
    masks = (0, 0b1111, 0b0011_1111)
    assert chosen("first_fit", "1g", *masks) == (0, 0)
    assert chosen("best_fit_low", "1g", *masks) == (2, 6)
    assert chosen("best_fit_low", "2g", *masks) == (1, 4)
    assert chosen("best_fit_low", "1g", 0, 0b1111) == (1, 4)
    assert chosen("best_fit_high", "1g", 0, 0b1111) == (1, 6)


def test_what_fgd_finds_alike_is_decided_by_the_order_of_devices() -> None:
    """As in the published simulator, where random ties cost it several points; then the higher start."""
    assert chosen("fgd_masks", "1g", 0b0001, 0b0010) == (0, 1)
    assert chosen("fgd_whole", "7g", 0, 0) == (0, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_what_fits_nowhere_is_refused_and_what_fits_is_not(policy: str) -> None:
    """By every policy alike."""
    assert chosen(policy, "7g", 1, 2) is None
    assert chosen(policy, "7g", 1, 0) == (1, 0)
    assert chosen(policy, "4g", 0b1111_0000, 1) == (0, 0)


def test_fgd_keeps_the_half_that_4g_needs() -> None:
    """1g beside the 3g at 4 would strand the lower half for 4g; beside a 1g at 0 it strands nothing more."""
    assert chosen("fgd_masks", "1g", 0b1111_0000, 0b0000_0001) == (1, 1)


def test_fgd_scores_in_whole_numbers_as_published() -> None:
    """What differs little is alike, so that one device is filled after another."""
    assert whole_score(0) == whole_score(0.01) == -50
    assert whole_score(0.1) == -52
    assert whole_score(-0.1) == -47


def test_a_fleet_counts_what_it_has() -> None:
    """Free slices, and devices on which each profile fits."""
    made = fleet(0, 0b1111, 0)
    made.change(2, SEVEN.full)
    assert made.free == 12
    assert made.by_mask == {0: [0], 0b1111: [1], SEVEN.full: [2]}
    assert made.fits[SEVEN.by_key["7g"].index] == 1
    assert made.fits[SEVEN.by_key["3g"].index] == 2


def test_a_trace_is_the_same_for_all_and_asks_for_the_load() -> None:
    """Memory slices asked for at a time, by Little's law, over those there are."""
    cell = cell_of("large", 1.1)
    trace = cell.trace(20_000, seed=3)
    assert trace == cell.trace(20_000, seed=3)
    asked = sum(SEVEN.profiles[profile].size * (until - at) for at, profile, until in trace) / trace[-1][0]
    assert asked / (cell.devices * SEVEN.slots) == pytest.approx(1.1, rel=0.03)


def test_everything_is_accepted_where_there_is_room_for_all() -> None:
    """And counted only after the warm-up."""
    cell = cell_of("uniform", 0.2)
    tally = run(cell, cell.trace(600, seed=1), POLICIES["ours"](), warm_up=100)
    assert tally.percent == 100
    assert sum(tally.arrived) == 500


def test_figures_are_means_of_paired_seeds() -> None:
    """Each cell and policy has one, and ours is set against both kinds of FGD and the best of all."""
    policies = ("best_fit_high", "fgd_masks", "ours")
    jobs = [Job(mix="small", load=1.1, seed=seed, policies=policies, arrivals=600) for seed in (1, 2)]
    outcomes = [(job, play(job)) for job in jobs]

    figures = figures_of(outcomes, policies)

    assert figures["small.1.1.ours"] == pytest.approx(sum(o["ours"][0] for _, o in outcomes) / 2)
    gap = figures["small.1.1.ours"] - figures["small.1.1.fgd_masks"]
    assert figures["ours_minus_fgd_masks"] == pytest.approx(gap)
    assert figures["worst_against_best"] <= gap + 1e-9
    assert set(MIXES) == {"uniform", "small", "large"}
