"""What Prometheus and Grafana are given: `python -m tools.monitoring` writes it anew.

    service_levels    the rules of service levels, from one table: infra/prometheus/service_levels.yaml
    level_histories   histories of calls, and which alerts each must raise: infra/prometheus/*.test.yaml, for promtool
    panels, boards    the dashboards: infra/grafana/dashboards
    expressions       what an expression asks for, and whether processes show it

The other alerts, infra/prometheus/alerts.yaml, are written by hand.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PROMETHEUS = ROOT / "infra" / "prometheus"
GRAFANA = ROOT / "infra" / "grafana"
RUNBOOKS = "{{ with $externalLabels.runbooks }}{{ . }}{{ else }}docs/runbooks.md{{ end }}"
"""Where the page is: operators who serve the documentation give its address as Prometheus' external label."""


def runbook_of(alert: str) -> str:
    """Where people are told what to do about an alert."""
    return f"{RUNBOOKS}#{alert.lower()}"
