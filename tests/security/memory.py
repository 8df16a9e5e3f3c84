"""How much memory processes hold, and held at most."""

from __future__ import annotations

from pathlib import Path


def peak_mb(pid: int) -> float:
    """The most that a process held since it started or `forget_peak` was called, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024 / 1e6


def forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
