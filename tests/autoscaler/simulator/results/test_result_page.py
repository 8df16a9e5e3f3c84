"""The page of a simulation."""

from __future__ import annotations

from pilotlight_autoscaler.simulator.results.result_page import page_of
from tests.autoscaler.simulator.simulated import recorded, simulation


def test_the_page_has_table_and_pictures_and_nothing_from_elsewhere() -> None:
    """Names are escaped."""
    page = page_of({"<one>": simulation({"f": recorded((0.0, 2.0))}, minutes=2).run()}, "a & b")

    assert "a &amp; b" in page
    assert "<th>&lt;one&gt;</th>" in page
    assert "<td>queue wait p95, s</td>" in page
    assert page.count('src="data:image/png;base64,') == 2
    assert "http" not in page
