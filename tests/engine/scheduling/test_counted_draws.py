"""Random numbers of a position."""

from __future__ import annotations

from pilotlight_engine.scheduling.counted_draws import drawn_bits, mixed, position_key


def test_the_finaliser_is_that_of_splitmix64() -> None:
    """Its published first numbers for the seed 0: `mixed` of the golden ratio, once and twice."""
    golden = 0x9E3779B97F4A7C15

    assert mixed(golden) == 0xE220A8397B1DCDAF
    assert mixed(2 * golden % 2**64) == 0x6E789E6AA1B965F4


def test_keys_differ_by_seed_and_position() -> None:
    """Also by negative seeds, and where their sum is the same."""
    keys = {position_key(seed, position) for seed in range(-50, 50) for position in range(100)}

    assert len(keys) == 10_000


def test_bits_are_even() -> None:
    """Of 64,000 bits about half are set, for neighbouring tokens too."""
    key = position_key(1, 1)
    ones = sum(drawn_bits(key, token).bit_count() for token in range(1000))

    assert abs(ones - 32_000) < 4 * 127  # four standard deviations
