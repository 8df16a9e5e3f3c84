"""Panels of dashboards, as Grafana's JSON (schema 39, Grafana 11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
"""Of the variable that every dashboard has: no dashboard knows the name of yours."""
WIDTH, HEIGHT = 8, 7
"""Of a panel, in the grid of 24 columns."""
STAT_HEIGHT = 4


@dataclass(frozen=True)
class Line:
    """What a panel shows: an expression, and what its series are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """A chart, or a number (`is_stat`). `unit` is Grafana's: s, percentunit, reqps, bytes, short."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    text: str = ""
    """What it says, shown beside its title."""
    is_stat: bool = False
    most: float | None = None
    """The top of its scale."""


@dataclass(frozen=True)
class Board:
    """A dashboard: rows of panels under headings."""

    uid: str
    title: str
    text: str
    rows: tuple[tuple[str, tuple[Panel, ...]], ...]


def board_json(board: Board) -> dict[str, Any]:
    """A dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for heading, row in board.rows:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": heading,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": top, "w": 24, "h": 1},
            }
        )
        top += 1
        left = tallest = 0
        for panel in row:
            width, height = (WIDTH // 2, STAT_HEIGHT) if panel.is_stat else (WIDTH, HEIGHT)
            if left + width > 24:
                top, left, tallest = top + tallest, 0, 0
            place = {"x": left, "y": top, "w": width, "h": height}
            panels.append(_panel_json(panel, len(panels) + 1, place))
            left, tallest = left + width, max(tallest, height)
        top += tallest
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.text,
        "tags": ["pilotlight"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "templating": {
            "list": [{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


def _panel_json(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.most is not None:
        defaults["max"] = panel.most
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    if panel.is_stat:
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}
    return {
        "id": number,
        "type": "stat" if panel.is_stat else "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": line.expr,
                "legendFormat": line.legend or "__auto",
                "range": not panel.is_stat,
                "instant": panel.is_stat,
            }
            for index, line in enumerate(panel.lines)
        ],
    }
