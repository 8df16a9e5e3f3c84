"""What was counted of all calls together, for the platform's metrics: no tenant and no function is named.

It is filled while calls are added up, so that a call pays for it with those of its tenth of a second.
"""

from __future__ import annotations

from pilotlight_core.host.metrics.histogram import Histogram
from pilotlight_core.model.spec import MethodSpec
from pilotlight_gateway.tally.tally_totals import GAP_SECONDS

BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
FILLS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
TOKENS = {"prompt_tokens": "prompt", "completion_tokens": "completion", "cached_tokens": "cached"}
"""What functions count -> how it is shown. The tenant's word, as all units."""


class PlatformTotals:
    """Since the gateway began."""

    def __init__(self) -> None:
        self.batch_sizes = Histogram(BATCH_SIZES)
        self.fills = Histogram(FILLS)
        """Of functions with batches: how full they were, of the most that they may hold."""
        self.gaps = Histogram(GAP_SECONDS)
        self.tokens: dict[str, int] = dict.fromkeys(TOKENS.values(), 0)
        self.retries = 0

    def add_batch(self, method: MethodSpec, size: int) -> None:
        """A call ran in a batch of this size."""
        self.batch_sizes.observe(float(size))
        if (batching := method.batching) is not None:
            self.fills.observe(size / batching.max_batch_size)

    def add_gaps(self, gaps: list[tuple[float, int]]) -> None:
        """Milliseconds between chunks, and of how many."""
        for gap_ms, chunks in gaps:
            self.gaps.observe(gap_ms / 1000.0, chunks)

    def add_units(self, units: dict[str, int]) -> None:
        """What a call counted."""
        for unit, kind in TOKENS.items():
            if unit in units:
                self.tokens[kind] += units[unit]
