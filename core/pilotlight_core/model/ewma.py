"""The exponentially weighted moving average."""

from __future__ import annotations


def ewma(mean: float | None, value: float, newest: float) -> float:
    """The mean after one more value.

    Args:
        mean: of the earlier values; None: `value` is the first, and becomes the mean.
        value: in the unit of the mean.
        newest: the weight of `value`, from 0 to 1. With 0.1 about the last ten count; for values at uneven times it is
            `1 - exp(-elapsed / memory)`.
    """
    return value if mean is None else mean + newest * (value - mean)
