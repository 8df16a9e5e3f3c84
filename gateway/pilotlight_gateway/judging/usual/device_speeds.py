"""How far devices of one type are apart, learnt of the old version's containers before anything is compared."""

from __future__ import annotations

import math

import msgspec

LEAST_DEVICES, LEAST_CALLS = 4, 50
MOST_CONTAINERS = 32


class DeviceSpeeds(msgspec.Struct):
    """Of one function."""

    sums: dict[str, list[float]] = {}
    """By container: calls, and the sums of their residuals and of the squares of those."""

    def note(self, container: str, residual: float) -> None:
        """A warm call of the old version took `residual` more than expected, as a logarithm."""
        found = self.sums.get(container)
        if found is None:
            if len(self.sums) >= MOST_CONTAINERS:
                return
            found = self.sums[container] = [0.0, 0.0, 0.0]
        found[0] += 1.0
        found[1] += residual
        found[2] += residual * residual

    def spread(self) -> float | None:
        """The standard deviation of the logarithms of their speeds; None: containers are too few.

        What the mean of a container's calls strays by chance is taken off.
        """
        groups = [found for found in self.sums.values() if found[0] >= LEAST_CALLS]
        if len(groups) < LEAST_DEVICES:
            return None
        means = [total / count for count, total, _ in groups]
        whole = math.fsum(means) / len(means)
        between = math.fsum([(mean - whole) ** 2 for mean in means]) / (len(means) - 1)
        chance = math.fsum([
            max(0.0, squares - total * total / count) / (count - 1.0) / count for count, total, squares in groups
        ]) / len(groups)  # fmt: skip
        return math.sqrt(max(0.0, between - chance))
