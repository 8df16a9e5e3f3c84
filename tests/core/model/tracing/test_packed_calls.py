"""Sampled calls as bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.tracing.packed_calls import HEAD, BadSheet, length_at, packed_group, unpacked
from pilotlight_core.model.tracing.sampled_call import SampledGroup, SampledRecord
from tests.builders.kept import sampled_call, sheet_of

ms = st.floats(0.0, 1e12)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
calls = st.builds(
    sampled_call, text, total_ms=ms, stages=st.tuples(ms, ms, ms, ms, ms, ms), container=st.sampled_from(["c1", "c2"]),
    mates=st.lists(text.filter(lambda one: len(one) <= 64), max_size=32).map(tuple),
)  # fmt: skip


@given(st.lists(calls, max_size=5))
def test_what_was_written_is_read(told: list[SampledRecord]) -> None:
    """To the last bit of its times, whatever the ids and the traceparents of its batch are."""
    sheet = sheet_of(*told)
    assert (unpacked(sheet.kinds, sheet.records), sheet.count) == (told, len(told))


@given(st.lists(calls, min_size=1, max_size=5))
def test_calls_of_an_earlier_release_become_the_same(told: list[SampledRecord]) -> None:
    """Those of a group are of one kind."""
    kind = told[0].kind
    same = [SampledRecord(kind, one.times) for one in told]
    assert packed_group(SampledGroup(kind, tuple(one.times for one in same))) == sheet_of(*same)


def test_it_is_known_where_the_next_one_begins() -> None:
    one, other = sampled_call(mates=("a", "bc")), sampled_call(id="call_2")
    sheet = sheet_of(one, other)
    begin = length_at(bytearray(sheet.records), 0)
    assert unpacked(sheet.kinds, sheet.records, begin) == [other]


def test_what_is_no_call_is_refused() -> None:
    """Cut off, of a kind that is not there, with times that cannot be, or an id that is no text."""
    sheet = sheet_of(sampled_call())
    records = sheet.records
    for bad in (
        records[:-1], records[:40], b"\x01" + records[1:], records[:-1] + b"\xff",
        records[: HEAD.size - 8] + b"\xff" * 8 + records[HEAD.size :],
    ):  # fmt: skip
        with pytest.raises(BadSheet):
            unpacked(sheet.kinds, bad)
