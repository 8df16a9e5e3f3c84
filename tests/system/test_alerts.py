"""The alert rules speak of metrics that a gateway shows."""

from __future__ import annotations

import re
from pathlib import Path

from tests.system.support.platform import Platform

RULES = Path(__file__).parents[2] / "infra" / "alerts.yaml"


def test_every_metric_of_the_rules_is_shown(platform: Platform) -> None:
    """An alert on a metric that was renamed would never come."""
    platform.http.get("/healthz")
    (exposed,) = platform.metrics()
    shown = set(re.findall(r"^# HELP (\w+) ", exposed, re.MULTILINE)) | set(
        re.findall(r"^(\w+)[{ ]", exposed, re.MULTILINE)
    )
    asked = {
        name
        for expression in re.findall(r"^ +expr: (.+)$", RULES.read_text(), re.MULTILINE)
        for name in re.findall(r"pilotlight_\w+", expression)
    }

    assert len(asked) >= 7
    assert asked - shown == set()
