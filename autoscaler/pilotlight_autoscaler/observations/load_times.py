"""How long starts take, by function: a warm window's containers begin so long before it opens.

The longest of those that were seen counts, in whole seconds. It is forgotten with the process: the first start of a
function after that begins when its window opens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from cachetools import LRUCache

FUNCTIONS_KEPT = 10_000
LONGEST_S = 900.0
"""A start that took longer is no measure of the next."""


class LoadTimes:
    def __init__(self) -> None:
        self._longest: LRUCache[str, float] = LRUCache(FUNCTIONS_KEPT)

    def on_ready(self, function: str, steps: Mapping[str, float]) -> None:
        """A container of the function became ready, after `steps` in milliseconds."""
        took_s = min(LONGEST_S, float(math.ceil(sum(steps.values()) / 1000.0)))
        if function and took_s > self._longest.get(function, 0.0):
            self._longest[function] = took_s

    def longest_s(self, function: str) -> float:
        """Seconds of a start of `tenant:app.function`; 0: none was seen."""
        return self._longest.get(function, 0.0)
