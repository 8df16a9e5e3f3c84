"""Runs the process of the duties."""

from __future__ import annotations

from pilotlight_gateway.duties.duty_serving import main

if __name__ == "__main__":
    main()
