"""All files that are made here, by their names below the root of the repository."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tools.monitoring.boards import boards
from tools.monitoring.level_histories import long_histories, short_histories
from tools.monitoring.panels import board_json
from tools.monitoring.service_levels import level_rules

HEAD = "# Made by `make monitoring` from tools/monitoring: change it there.\n"
RULES = "service_levels.yaml"


def monitoring_files() -> dict[str, str]:
    """Rules, their tests, and dashboards."""
    return {
        f"infra/prometheus/{RULES}": _yaml(level_rules()),
        "infra/prometheus/service_levels.test.yaml": _yaml(short_histories(RULES)),
        "infra/prometheus/service_levels_long.test.yaml": _yaml(long_histories(RULES)),
    } | {f"infra/grafana/dashboards/{board.uid}.json": _json(board_json(board)) for board in boards()}


def _yaml(made: dict[str, Any]) -> str:
    once = json.loads(json.dumps(made))  # nothing is the same object twice, which would become an anchor
    return HEAD + str(yaml.safe_dump(once, sort_keys=False, width=1000, allow_unicode=True))


def _json(made: dict[str, Any]) -> str:
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"
