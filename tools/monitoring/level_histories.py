"""Histories of calls for promtool, and which alerts each of them must raise and which not.

Short ones run within seconds; those of days take promtool longer, and have a file of their own.
"""

from __future__ import annotations

from typing import Any

from tools.monitoring.service_levels import BURNS, CALLS, LEVELS, burn_rules, few_calls_rule

History = dict[str, Any]

DAY = 24 * 60
"""In minutes, as all instants here."""
FIRED = dict[str, Any]


def short_histories(rules: str) -> History:
    """Those of hours. `rules` is the name of the file of rules."""
    quiet = "0+600x{}"
    return _file(rules, "1m", [
        _history(
            "healthy: silence",
            _calls(quiet.format(180), "0x180"), {120: []},
        ),
        _history(
            "everything fails for ten minutes: both pages",
            _calls("0+600x120 72000x10", "0x120 0+600x10"), {130: [("1h", "availability"), ("6h", "availability")]},
        ),
        _history(
            "2 % fail for an hour: both pages; ten minutes after it is over that of six hours alone, then none",
            _calls("0+600x60 36000+588x60 71280+600x60", "0x60 0+12x60 720x60"),
            {119: [("1h", "availability"), ("6h", "availability")], 130: [("6h", "availability")], 170: []},
        ),
        _history(
            "one failure of two calls: silence",
            _calls("0x60 1x60", "0x60 1x60"), {63: [], 100: []},
        ),
        _history(
            "70 % of answers are late, and 14.4 times the 5 % that may be are 72 %: the slower page alone",
            _calls("0+180x120", "0+420x120", "unary"), {100: [("6h", "unary")]},
        ),
        _history(
            "first chunks are late: that level, and no other one",
            _calls("0+100x120", "0+500x120", "first_chunk"), {100: [("1h", "first_chunk"), ("6h", "first_chunk")]},
        ),
        _history(
            "tokens are late: that level, and no other one",
            _calls("0+100x120", "0+500x120", "gap"), {100: [("1h", "gap"), ("6h", "gap")]},
        ),
        _few("hardly anybody calls, and nobody succeeds", "5x90", "0x20 1x20 2x20 4x30", 85, fires=True),
        _few("hardly anybody calls, and somebody succeeds", "5x60 6x30", "0x20 1x20 2x20 4x30", 85, fires=False),
    ])  # fmt: skip


def long_histories(rules: str) -> History:
    """Those of days."""
    old, counted = f"0+600x{3 * DAY}", 600 * 3 * DAY
    return _file(rules, "15m", [
        _history(
            "everything fails for a quarter of an hour after three clean days: more than the budget of all windows",
            _calls(f"{old} {counted}x15", f"0x{3 * DAY} 0+600x15"),
            {3 * DAY + 15: [(burn.long, "availability") for burn in BURNS]},
        ),
        _history(
            "half a percent for a day: the tickets, and no page",
            _calls(f"{old} {counted}+597x{DAY}", f"0x{3 * DAY} 0+3x{DAY}"),
            {4 * DAY - 15: [("1d", "availability"), ("3d", "availability")]},
        ),
        _history(
            "a young platform: long windows see what there is, and wait",
            _calls("0+594x60", "0+6x60"), {60: [("6h", "availability")]},
        ),
        _history(
            "a series that appears with its first failures would hide them: gateways show all of them at once",
            _calls(f"0+600x{2 * DAY}", f"_x{DAY} 5000x{DAY}"),
            {DAY + 30: []},
        ),
    ])  # fmt: skip


def _file(rules: str, every: str, histories: list[History]) -> History:
    return {"rule_files": [rules], "evaluation_interval": every, "tests": histories}


def _history(name: str, series: list[History], fired: dict[int, list[tuple[str, str]]]) -> History:
    """`fired`: by minute, the windows and levels of `PilotlightBudgetBurns`."""
    return {
        "name": name,
        "interval": "1m",
        "input_series": series,
        "alert_rule_test": [
            {
                "eval_time": f"{minute}m",
                "alertname": "PilotlightBudgetBurns",
                "exp_alerts": [_burning(window, level) for window, level in which],
            }
            for minute, which in fired.items()
        ],
    }


def _few(name: str, good: str, bad: str, minute: int, *, fires: bool) -> History:
    rule = few_calls_rule()
    shown = {"exp_labels": {**rule["labels"], "slo": "availability"}, "exp_annotations": _told(rule)}
    return {
        "name": name,
        "interval": "1m",
        "input_series": _calls(good, bad),
        "alert_rule_test": [
            {"eval_time": f"{minute}m", "alertname": rule["alert"], "exp_alerts": [shown] if fires else []}
        ],
    }


def _calls(good: str, bad: str, level: str = "availability") -> list[History]:
    return [_series(level, "true", good), _series(level, "false", bad)]


def _series(level: str, good: str, values: str) -> History:
    return {"series": f'{CALLS}{{slo="{level}",good="{good}"}}', "values": values}


def _burning(window: str, level: str) -> FIRED:
    possible = [(each.name, burn.long) for each in LEVELS for burn in BURNS if burn.rate * (1.0 - each.objective) < 1.0]
    rule = burn_rules()[possible.index((level, window))]
    return {"exp_labels": rule["labels"], "exp_annotations": _told(rule)}


def _told(rule: dict[str, Any]) -> dict[str, str]:
    """Its annotations as they are told where no external label says where the runbooks are."""
    anchor = rule["annotations"]["runbook_url"].split("#")[1]
    return {**rule["annotations"], "runbook_url": f"docs/runbooks.md#{anchor}"}
