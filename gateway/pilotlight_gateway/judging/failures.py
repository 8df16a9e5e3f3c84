"""Which failures may be a version's fault, and which of them are one event."""

from __future__ import annotations

from typing import TypeVar

OF_VERSION = frozenset({"function_raised", "execution_timeout", "load_failed", "bad_output", "container_died"})
"""Others are the caller's, its limits', or the platform's."""
DEADLY = frozenset({"execution_timeout", "load_failed", "container_died"})
"""A container dies of them with all its calls: one event."""
MOST_REMEMBERED = 64
"""Dead containers, units and calls that failed, containers that started, of each kind."""
MOST_HANGING = 512
"""Calls that were slow before they ended: where one hangs, many do."""
LOST_S = 86_400.0
"""After which nobody will say of one that it has ended: its gateway is gone."""


Remembered = TypeVar("Remembered")


def is_repeated(seen: dict[str, float], key: str, most: int = MOST_REMEMBERED) -> bool:
    """Whether `key` was among the last ones; it is now."""
    if key in seen:
        return True
    keep(seen, key, 1.0, most)
    return False


def keep(seen: dict[str, Remembered], key: str, value: Remembered, most: int = MOST_REMEMBERED) -> None:
    """Keep the last ones."""
    seen[key] = value
    if len(seen) > most:
        del seen[next(iter(seen))]
