"""The wall clock of all processes of a platform, which a test sets."""

from __future__ import annotations

import struct
import time
from pathlib import Path

HERE = Path(__file__).parent


class WallClock:
    """Those processes show it that are started with `env`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "wall-clock"
        self.step_s = 0.0
        """By how much it is ahead."""
        self.set(0.0)
        self.env = {"PYTHONPATH": str(HERE / "set_clock"), "SET_CLOCK_FILE": str(self._path)}

    def set(self, step_s: float) -> None:
        """Let it show so many seconds more than the test's own."""
        self.step_s = step_s
        with self._path.open("r+b" if self._path.exists() else "wb") as file:
            file.write(struct.pack("=d", step_s))

    def time(self) -> float:
        """What it shows."""
        return time.time() + self.step_s
