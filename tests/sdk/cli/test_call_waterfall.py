"""One call, drawn to scale."""

from __future__ import annotations

import msgspec

from pilotlight.cli.call_waterfall import BAR, waterfall_lines
from pilotlight_core.model.api.seeing.trace_api import CallExplanation
from tests.sdk.cli.seeing_answers import EXPLAINED_CALL, JOB

FOUND = msgspec.convert(EXPLAINED_CALL, CallExplanation)


def test_each_part_has_a_bar_to_scale_behind_the_sentences() -> None:
    """A step of a part is drawn otherwise."""
    said, _, start, step, execute, _, ids = waterfall_lines(FOUND)
    assert said == "hello.greet@v17 took 1.00 s and ended well."
    assert (start.count("#"), start.find("#")) == (BAR * 7 // 10, len("execute 2") + 2)
    assert (step.count(".") - 1, step.strip().startswith("import")) == (BAR * 4 // 10, True)
    assert execute.endswith("300.0 ms")
    assert (JOB in ids, "4bf92f3577b34da6a3ce929d0e0e4736" in ids) == (True, True)


def test_what_took_no_time_still_has_a_mark() -> None:
    """And a refused call has sentences alone."""
    (row,) = [msgspec.structs.replace(row, begin_ms=1_000.0, ms=0.01) for row in FOUND.rows[:1]]
    lines = list(waterfall_lines(msgspec.structs.replace(FOUND, rows=(row,))))
    assert lines[2].count("#") == 1
    assert list(waterfall_lines(msgspec.structs.replace(FOUND, rows=()))) == list(FOUND.sentences)
