"""When running containers are moved to empty hardly used devices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Repacking:
    """When running containers may be moved. Seconds."""

    every_s: float = 30.0
    """Interval of emptying the least used devices; 0: never."""
    min_residency_s: float = 600.0
    """A younger container is not moved."""
