"""Runs the process of the dashboard."""

from __future__ import annotations

from pilotlight_gateway.dashboard.dashboard_serving import main

if __name__ == "__main__":
    main()
