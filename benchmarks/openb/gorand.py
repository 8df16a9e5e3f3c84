"""Go's math/rand (before Go 1.20's automatic seeding), so that a published seed gives the published order.

Source: the additive lagged Fibonacci generator x[n] = x[n-607] + x[n-273] mod 2**64 of Mitchell and Reeds, in the form
documented in Go's `math/rand`. Go ships its start state as 607 constants, said to be the state after 7.8e12 steps from
seed 1. We compute them: a step is linear, so t**n modulo t**607 = t**334 + 1 jumps n steps ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

LENGTH = 607
TAP = 273
FEED = LENGTH - TAP
STEPS = 7_800_000_000_000
BITS = 2**64 - 1

Words = NDArray[np.uint64]


class GoRandom:
    """`rand.New(rand.NewSource(seed))`."""

    def __init__(self, seed: int) -> None:
        lehmer = _lehmer(seed)
        self._state = [_word(lehmer, 40, 20) ^ word for word in start()]
        self._tap = 0
        self._feed = FEED

    def int63(self) -> int:
        """A number of 63 bits."""
        self._tap = (self._tap - 1) % LENGTH
        self._feed = (self._feed - 1) % LENGTH
        word = (self._state[self._feed] + self._state[self._tap]) & BITS
        self._state[self._feed] = word
        return word & (BITS >> 1)

    def intn(self, n: int) -> int:
        """A number below `n`, which is at most 2**31 - 1."""
        if not n & (n - 1):
            return (self.int63() >> 32) & (n - 1)
        most = 2**31 - 1 - 2**31 % n
        while (value := self.int63() >> 32) > most:
            pass
        return value % n

    def shuffle(self, values: MutableSequence[Any]) -> None:
        """Put the values in another order, in place."""
        for last in range(len(values) - 1, 0, -1):
            other = self._below(last + 1)
            values[last], values[other] = values[other], values[last]

    def permutation(self, n: int) -> list[int]:
        """`rand.Perm(n)`."""
        order = [0] * n
        for last in range(n):
            other = self.intn(last + 1)
            order[last] = order[other]
            order[other] = last
        return order

    def _below(self, n: int) -> int:
        """A number below `n` by multiplication (Lemire), as `Shuffle` draws it."""
        product = (self.int63() >> 31) * n
        if product & 0xFFFFFFFF < n:
            least = (2**32 - n) % n
            while product & 0xFFFFFFFF < least:
                product = (self.int63() >> 31) * n
        return product >> 32


@cache
def start() -> tuple[int, ...]:
    """The 607 words that every seed is mixed with."""
    lehmer = _lehmer(1)
    slots = [_word(lehmer, 20, 10) for _ in range(LENGTH)]
    # Step k writes slot (FEED - k) mod LENGTH, so the slots hold the terms from k = -606 to 0.
    terms = [slots[(FEED - 1 - number) % LENGTH] for number in range(LENGTH)]
    for number in range(LENGTH, 2 * LENGTH):
        terms.append((terms[number - LENGTH] + terms[number - TAP]) & BITS)
    window = np.array(terms, np.uint64)
    ahead = _power(STEPS)
    words = [0] * LENGTH
    for number in range(LENGTH):
        step = STEPS - LENGTH + 1 + number
        words[(FEED - step) % LENGTH] = int(np.sum(ahead * window[number : number + LENGTH], dtype=np.uint64))
    return tuple(words)


def _power(exponent: int) -> Words:
    """t**exponent modulo t**607 = t**334 + 1, by squaring."""
    result = np.zeros(LENGTH, np.uint64)
    base = result.copy()
    result[0] = base[1] = 1
    while exponent:
        if exponent & 1:
            result = _times(result, base)
        base = _times(base, base)
        exponent >>= 1
    return result


def _times(left: Words, right: Words) -> Words:
    product = np.zeros(2 * LENGTH, np.uint64)
    for power in np.flatnonzero(left):
        product[power : power + LENGTH] += left[power] * right
    # What folds onto powers from 607 on folds again: 1212 -> 939 -> 666 -> 393.
    for _ in range(3):
        high = product[LENGTH:].copy()
        product[LENGTH:] = 0
        product[:LENGTH] += high
        product[FEED : FEED + LENGTH] += high
    return product[:LENGTH]


def _lehmer(seed: int) -> Iterator[int]:
    """x = 48271 x mod 2**31 - 1, from the twenty-first on."""

    def numbers() -> Iterator[int]:
        x = seed % (2**31 - 1) or 89482311
        while True:
            x = 48271 * x % (2**31 - 1)
            yield x

    return islice(numbers(), 20, None)


def _word(lehmer: Iterator[int], first: int, second: int) -> int:
    return (next(lehmer) << first ^ next(lehmer) << second ^ next(lehmer)) & BITS
