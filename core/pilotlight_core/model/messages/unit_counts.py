"""Where running code counts what it used of a call, such as tokens: `pilotlight.count_units` adds, the guest reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from pilotlight_core.model.messages.usage_facts import units_fault


class UnitSink(Protocol):
    """The call or batch that runs."""

    items: int
    """The number of a batch's items; 0: it is one call."""
    counted: list[dict[str, int]] | None
    """The units of the call, or of each item; None: nothing was counted."""


COUNTING: ContextVar[UnitSink | None] = ContextVar("pilotlight_counting", default=None)
"""What runs here; a thread or a task of the tenant's own adds to the same one if it has the context."""


def add_units(sink: UnitSink | None, counts: Mapping[str, Any]) -> str:
    """Add `counts` to what runs: a number of each unit, or for a batch a list with one for each item.

    Returns why they cannot be, naming the unit, and adds nothing then; "": they are added. Without a sink, which is
    code that does not run on the platform, they are only checked.
    """
    rows = _rows_of(sink, counts)
    if isinstance(rows, str):
        return rows
    for row in rows:
        if why := units_fault(row):
            return why
    if sink is None:
        return ""
    before = sink.counted or [{} for _ in rows]
    sums = [
        old | {name: old.get(name, 0) + count for name, count in new.items()}
        for old, new in zip(before, rows, strict=True)
    ]
    for one in sums:
        if why := units_fault(one):
            return f"together {why}"
    sink.counted = sums
    return ""


def _rows_of(sink: UnitSink | None, counts: Mapping[str, Any]) -> list[dict[str, Any]] | str:
    """The units of each item."""
    items = sink.items if sink is not None else 0
    if not items:
        return [dict(counts)]
    for name, column in counts.items():
        if isinstance(column, str) or not isinstance(column, Sequence) or len(column) != items:
            return f"{name} must be a list with a number for each of the {items} items of the batch"
    return [{name: column[number] for name, column in counts.items()} for number in range(items)]
