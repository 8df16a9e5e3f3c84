"""What it is worth to keep something in a host's memory that may be needed again: a parked container, or weights. Pure.

Whatever is kept saves its load when the next call comes. So it is worth the seconds of the load, times the chance that
a call comes, for each GiB that it takes. What has not been needed for long is worth less: a chance is of the next
minute, and was told when it was put there.
"""

from __future__ import annotations

import math
from typing import Final

GIB: Final = 2**30
LEAST_BYTES: Final = 2**20
"""What takes less counts as this, so that a small thing is not worth more than any number of large ones."""
HALVES_S: Final = 600.0
"""After so long unneeded, a chance is half of what was told."""


def worth(load_s: float, likelihood: float, size: int, unneeded_s: float = 0.0) -> float:
    """Seconds of loading that a GiB saves, by expectation.

    Args:
        load_s: how long it takes to have it again.
        likelihood: how likely it is needed in the next minute, when that was told.
        size: its bytes.
        unneeded_s: since then.
    """
    chance = max(0.0, min(1.0, likelihood)) * math.pow(0.5, max(0.0, unneeded_s) / HALVES_S)
    return max(0.0, load_s) * chance * GIB / max(LEAST_BYTES, size)
