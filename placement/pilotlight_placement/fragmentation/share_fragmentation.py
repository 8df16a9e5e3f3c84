"""The expected load of a device that is given in shares, by what is free on it.

FGD (Weng et al., USENIX ATC 2023) calls free parts stranded when a typical ask does not fit into them. Here a device
looks further ahead: it is offered HORIZON typical asks in turn, and accepts one only if its gain exceeds what it
blocks, the stochastic knapsack with a deadline (Papastavrou, Rajagopalan, Kleywegt, Management Science 42(12), 1996).
With K_0 = 0 and typical asks of weight p and size s,

    K_t(r) = sum over asks of p * max(K_{t-1}(r), s + K_{t-1}(r - s))

is the expected load of a device with r free.
"""

from __future__ import annotations

from collections.abc import Mapping

ROWS = 100
"""Rows of a table beside that of 0: sizes are rounded up to so many parts of a device, what is free is rounded down."""
HORIZON = 28
"""Asks that a device is offered: few make it greedy, many make it wait. 20 to 40 do as well."""


def expected_loads(sizes: Mapping[int, float]) -> tuple[float, ...]:
    """K_HORIZON by rows that are free, as parts of what a whole device can expect: 0 to 1.

    Args:
        sizes: weight of the typical asks by the rows that they take, 1 to ROWS; one weight at least is above 0.
    """
    total = sum(sizes.values())
    offered = sorted((rows, weight / total) for rows, weight in sizes.items() if weight)
    loads = [0.0] * (ROWS + 1)
    for _ in range(HORIZON):
        loads = _offered(loads, offered)
    return tuple([load / loads[-1] for load in loads])


def _offered(loads: list[float], offered: list[tuple[int, float]]) -> list[float]:
    """One step of the recurrence: K_t from K_{t-1}."""
    after = loads[:]
    for rows, part in offered:
        for free in range(rows, ROWS + 1):
            if (gain := rows + loads[free - rows] - loads[free]) > 0:
                after[free] += part * gain
    return after
