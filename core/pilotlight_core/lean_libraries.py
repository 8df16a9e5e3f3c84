"""Libraries without those that they would load for uses that no server has; a process imports this before others.

structlog's pretty tracebacks bring rich and pygments, a tenth of what an idle process takes of memory and of its start.
A sixth of a start would be collections of garbage, of which imports make none.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

AT_START = 20_000
"""Allocations between two collections."""

gc.set_threshold(AT_START, 20, 50)


@contextmanager
def without(*libraries: str) -> Iterator[None]:
    """Have imports of `libraries` fail within the block, which those bear to whom they are a choice.

    One that is loaded already stays as it is, and whoever needs one may import it later.
    """
    absent = [name for name in libraries if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type] # so that importing it fails
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


with without("rich"):
    import structlog

__all__ = ["structlog", "without"]
