"""Numbers as people read them."""

from __future__ import annotations

import pytest

from pilotlight_gateway.dashboard.page_parts import shown_values as shown


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (shown.count_text(1234567), "1,234,567"),
        (shown.count_text(None), "–"),
        (shown.number_text(0.123456), "0.123"),
        (shown.number_text(12345.6), "12,300"),
        (shown.number_text(12345678.9), "12,345,679"),
        (shown.number_text(0.0), "0"),
        (shown.part_text(0.1234), "12.3 %"),
        (shown.time_text(None), "–"),
        (shown.time_text(0), "0"),
        (shown.time_text(0.25), "250 µs"),
        (shown.time_text(3.14159), "3.1 ms"),
        (shown.time_text(314.159), "314 ms"),
        (shown.time_text(4_321), "4.32 s"),
        (shown.time_text(43_210), "43.2 s"),
        (shown.time_text(125_000), "2 min 5 s"),
        (shown.time_text(7_500_000), "2 h 5 min"),
        (shown.time_text(180_000_000), "2 d 2 h"),
        (shown.bytes_text(512), "512 B"),
        (shown.bytes_text(3 * 2**30), "3.0 GiB"),
        (shown.money_text("1234.567", "USD"), "1,234.57 USD"),
        (shown.money_text("0.000012345"), "0.0000123"),
        (shown.money_text("0"), "0.00"),
        (shown.money_text(None), "0.00"),
        (shown.money_text("x"), "–"),
        (shown.instant_text(0.0), "–"),
        (shown.instant_text(1_795_760_000.0), "2026-11-27 06:13:20"),
        (shown.plural(1, "call"), "1 call"),
        (shown.plural(2000, "box", "boxes"), "2,000 boxes"),
        (shown.text_at({"a": None}, "a"), ""),
        (shown.text_at({"a": 5}, "a"), "5"),
    ],
)  # fmt: skip
def test_each_kind_of_number_is_written_one_way(made: str, text: str) -> None:
    """Rounded, with its unit; what is not known is a dash."""
    assert made == text
