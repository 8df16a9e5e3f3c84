"""How much work something does, in figures that are the same on every machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType


def calls_made(act: Callable[[], object]) -> int:
    """How many functions `act` calls in this thread, Python's own and those in C."""
    count = 0

    def on_event(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def growth(act: Callable[[int], object], small: int, large: int) -> float:
    """By how much more processor time `act(large)` takes than `act(small)`: the least of five each, in turns."""
    least = dict.fromkeys((small, large), float("inf"))
    for _ in range(5):
        for size in least:
            began = time.process_time()  # others' work on this machine does not count
            act(size)
            least[size] = min(least[size], time.process_time() - began)
    return least[large] / least[small]
