"""How engines are, as containers tell it."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.messages.engine_report import EngineReport, open_engine_reports, report_engine


def test_the_room_is_told_as_a_part() -> None:
    assert EngineReport(kv_used=3, kv_total=4).kv_used_ratio == 0.75
    assert EngineReport().kv_used_ratio == 0
    assert EngineReport(kv_used=9, kv_total=4).kv_used_ratio == 1


def test_a_hostile_one_cannot_be_read() -> None:
    """No number is negative or without bound."""
    for kv_used in (-1, 2**60):
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(msgspec.msgpack.encode([kv_used]), type=EngineReport)


def test_it_is_told_to_whoever_listens() -> None:
    heard: list[EngineReport] = []
    open_engine_reports(heard.append)
    report_engine(EngineReport(running=1))
    open_engine_reports(None)
    report_engine(EngineReport(running=2))

    assert heard == [EngineReport(running=1)]


@pytest.mark.parametrize(
    ("report", "lacks"),
    [
        (EngineReport(waiting=3), True),
        (EngineReport(), False),
        (EngineReport(waiting=3, running=2, kv_used=600, kv_total=1000), False),
        (EngineReport(waiting=3, running=2, kv_used=700, kv_total=1000), True),
        (EngineReport(waiting=0, running=2, kv_used=1000, kv_total=1000), False),
        (EngineReport(waiting=1, running=0, kv_used=0, kv_total=1000), False),
    ],
)
def test_calls_lack_room_where_less_is_left_than_one_has(report: EngineReport, lacks: bool) -> None:
    """Those that only wait for their turn do not; where no room is told there is none."""
    assert report.lacks_room is lacks
