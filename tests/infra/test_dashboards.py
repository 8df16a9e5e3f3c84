"""What dashboards and alerts ask for is held against what processes show, and what is wrong is found."""

from __future__ import annotations

import pytest

from tools.monitoring import GRAFANA
from tools.monitoring.boards import boards
from tools.monitoring.expressions import asked_by, missing, shown_by
from tools.monitoring.panels import board_json

EXPOSITION = """\
# TYPE a_total counter
# HELP a_total x
a_total{code="x"} 1
# TYPE pilotlight_calls_shed counter
# HELP pilotlight_calls_shed x
"""
SHOWN = shown_by([EXPOSITION])


@pytest.mark.parametrize(
    ("expression", "lacks"),
    [
        ('sum by (code) (rate(a_total{code="x"}[$__rate_interval]))', ""),
        ("sum by (instance) (pilotlight_calls_shed_total)", ""),
        ("sum(recorded:a)", ""),
        ("rate(b_total[5m])", "b_total is shown by no process"),
        ("sum by (tenant) (a_total)", "a_total has no label tenant"),
        ('a_total{code="y"}', "a_total has no code='y'"),
        ("1 - (a_total or b)", "b is shown by no process"),
    ],
)
def test_what_nobody_shows_is_named(expression: str, lacks: str) -> None:
    found = missing([("here", expression)], SHOWN, {"recorded:a": frozenset()})
    assert found == ([f"here: {lacks}"] if lacks else [])


def test_what_is_no_expression_is_refused() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        asked_by("sum(rate(a_total[5m])")


@pytest.mark.parametrize("board", boards(), ids=lambda board: board.uid)
def test_a_dashboard_is_one_that_grafana_imports(board: object) -> None:
    """Panels do not lie over each other, each has its source by a variable, a unit, and a title of its own."""
    made = board_json(next(each for each in boards() if each == board))
    panels = [panel for panel in made["panels"] if panel["type"] != "row"]
    taken: set[tuple[int, int]] = set()
    for panel in made["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken
        assert place["x"] + place["w"] <= 24
        taken |= cells

    assert len({panel["title"] for panel in panels}) == len(panels)
    assert {panel["id"] for panel in made["panels"]} == set(range(1, len(made["panels"]) + 1))
    for panel in panels:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["targets"]
    assert (GRAFANA / "dashboards" / f"{made['uid']}.json").exists()
