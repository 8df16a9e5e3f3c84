"""Write the rules and the dashboards."""

from __future__ import annotations

from tools.monitoring import ROOT
from tools.monitoring.monitoring_files import monitoring_files


def main() -> None:
    """Write them anew."""
    for name, text in monitoring_files().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
