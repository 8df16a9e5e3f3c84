"""Write the chart."""

from __future__ import annotations

import shutil

from tools.chart import CHART
from tools.chart.chart_files import chart_files


def main() -> None:
    """Write it anew; the folder holds nothing else."""
    made = chart_files()
    shutil.rmtree(CHART, ignore_errors=True)
    for name, text in made.items():
        path = CHART / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
