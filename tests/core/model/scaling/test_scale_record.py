"""People's word about the size of a function."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.scaling.scale_record import BOUNDS, BoundOverride, ScaleRecord, overridden
from tests.builders.specs import function_spec


def said(**more: BoundOverride) -> ScaleRecord:
    return ScaleRecord(tenant="acme", app="hello", function="greet", **more)


def test_an_override_ends_by_itself() -> None:
    """Nobody has to remove it."""
    record = said(min_containers=BoundOverride(value=2, at=0.0, ends_at=100.0))
    assert overridden(function_spec(), record, 99.9).min_containers == 2
    assert overridden(function_spec(), record, 100.0).min_containers == 0
    assert record.holding(99.9).keys() == {"min_containers"}
    assert not record.holding(100.0)


def test_each_field_has_its_own_end() -> None:
    """One that has none stays."""
    record = said(
        max_containers=BoundOverride(value=20, at=0.0), scaledown_window=BoundOverride(value=5, at=0.0, ends_at=9.0)
    )
    spec = function_spec(max_containers=3, buffer_containers=1)
    late = overridden(spec, record, 1e10)
    assert (late.max_containers, late.scaledown_window, late.buffer_containers) == (20, 60.0, 1)
    assert overridden(spec, record, 5.0).scaledown_window == 5.0
    assert overridden(spec, None, 5.0) == spec


def test_a_record_is_small() -> None:
    """At most 2 KiB, with the longest names, whatever people say: every gateway and controller has it in memory."""
    most = BoundOverride(value=86_400.0, at=1e10, ends_at=1e10, by="k" * 63)
    record = ScaleRecord(tenant="t" * 63, app="a" * 63, function="f" * 63, **dict.fromkeys(BOUNDS, most))
    assert len(msgspec.msgpack.encode(record)) <= 2_048
