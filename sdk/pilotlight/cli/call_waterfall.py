"""Why one call took as long as it did, as people read it at a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_core.model.api.seeing.trace_api import CallExplanation, WaterfallRow

BAR = 40
"""Characters of the longest bar."""


def waterfall_lines(found: CallExplanation) -> Iterator[str]:
    """Yield the sentences, then a bar for each part of the call's time, to scale."""
    yield from found.sentences
    if not found.rows:
        return
    yield ""
    width = max(len(_name(row)) for row in found.rows)
    for row in found.rows:
        yield f"{_name(row):<{width}}  {_bar(row, found.total_ms)}  {row.ms:,.1f} ms"
    yield ""
    yield f"call {found.id}, trace {found.trace_id}"


def _name(row: WaterfallRow) -> str:
    number = f" {row.attempt}" if row.attempt else ""
    return f"{'  ' if row.step_of else ''}{row.name}{number}"


def _bar(row: WaterfallRow, total_ms: float) -> str:
    scale = BAR / max(total_ms, 1e-9)
    before = min(BAR - 1, int(row.begin_ms * scale))
    length = max(1, min(BAR - before, round(row.ms * scale)))
    mark = "." if row.step_of else "#"
    return f"{' ' * before}{mark * length}".ljust(BAR)
