"""The Helm chart: `python -m tools.chart` writes infra/helm/pilotlight anew, from what kubectl makes of our manifests.

    chart_values      which values of the manifests an operator may set, what they are called, and where they stand
    chart_templates   the manifests with those values taken out
    chart_files       all files of the chart

Nothing in the chart is written by hand, so it cannot say anything that the manifests do not.
"""

from pathlib import Path

ROOT = Path(__file__).parents[2]
CHART = ROOT / "infra" / "helm" / "pilotlight"
