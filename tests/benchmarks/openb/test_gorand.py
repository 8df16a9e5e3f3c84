"""Go's generator, against numbers that Go is known to print."""

from __future__ import annotations

from benchmarks.openb.gorand import GoRandom


def test_seed_1_gives_the_numbers_that_go_prints() -> None:
    """`rand.Int()` and `rand.Intn(100)` of an unseeded program before Go 1.20."""
    random = GoRandom(1)
    assert [random.int63() for _ in range(2)] == [5577006791947779410, 8674665223082153551]
    again = GoRandom(1)
    assert [again.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_orders_keep_every_value() -> None:
    """A permutation and a shuffle hold each value once, and a seed gives the same order again."""
    values = list(range(50))
    GoRandom(42).shuffle(values)
    again = list(range(50))
    GoRandom(42).shuffle(again)
    assert values == again != sorted(values)
    assert sorted(values) == sorted(GoRandom(42).permutation(50)) == list(range(50))


def test_powers_of_two_take_the_low_bits() -> None:
    """`Intn` of a power of two needs no second draw."""
    assert {GoRandom(seed).intn(8) for seed in range(20)} <= set(range(8))
    assert GoRandom(7).intn(1) == 0
