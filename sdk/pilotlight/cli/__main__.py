"""`python -m pilotlight.cli`."""

from __future__ import annotations

from pilotlight.cli.main import main

if __name__ == "__main__":
    main()
