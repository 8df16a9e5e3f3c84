"""A sheet of sampled calls, as it is written and taken."""

from __future__ import annotations

from pilotlight_core.model.tracing.packed_calls import unpacked
from pilotlight_core.model.tracing.sampled_call import MOST_OF_SHEET
from pilotlight_gateway.traces.open_sheet import FULL_BYTES, KnownKind, OpenSheet
from tests.builders.kept import sampled_call, sheet_of, written

FIRST, OTHER, LAST = sampled_call(id="call_1"), sampled_call(id="call_2", container="c2"), sampled_call(id="call_3")


def test_each_call_is_taken_once() -> None:
    """What is written later is in the next part, which has its kinds."""
    sheet = written(OpenSheet("acme", 1), FIRST, OTHER)
    assert (sheet.unsent, sheet.take(), sheet.unsent) == (2, sheet_of(FIRST, OTHER), 0)
    written(sheet, LAST)
    assert sheet.unsent == 1
    later = sheet.take()
    assert (unpacked(later.kinds, later.records), later.count) == ([LAST], 1)


def test_what_is_dropped_is_told_no_more() -> None:
    """The oldest first; what is yet to be sent is."""
    sheet = written(OpenSheet("acme", 1), FIRST, OTHER, LAST)
    assert (sheet.oldest(), sheet.newest_first()) == (FIRST, [LAST, OTHER, FIRST])
    sheet.drop_one()
    assert (sheet.oldest(), sheet.newest_first(), sheet.left, sheet.unsent) == (OTHER, [LAST, OTHER], 2, 3)
    assert sheet.take() == sheet_of(FIRST, OTHER, LAST)


def test_it_is_full_by_calls_and_by_bytes() -> None:
    sheet = written(OpenSheet("acme", 1), *[FIRST] * (MOST_OF_SHEET - 1))
    assert not sheet.full
    assert written(sheet, FIRST).full
    long = sampled_call(mates=("x" * 64,) * 32)
    assert written(OpenSheet("acme", 2), *[long] * (FULL_BYTES // 2_000)).full


def test_a_kind_stands_in_each_sheet_once() -> None:
    """Whichever was written to in between."""
    known, first, second = KnownKind(FIRST.kind), OpenSheet("acme", 1), OpenSheet("acme", 2)
    stages = dict.fromkeys(("gateway", "queue", "start", "transport", "batch_wait", "execute"), 1.0)
    for sheet in (first, first, second, second):
        sheet.write(known, "call_1", 0, 6.0, stages, 0, ())
    assert (first.kinds, second.kinds) == ([FIRST.kind], [FIRST.kind])
    assert first.may_have(b"call_1")
    assert not first.may_have(b"call_2")
