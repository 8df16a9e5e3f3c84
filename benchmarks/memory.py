"""Memory of an idle platform: proportional set size per process, and per blank."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks import report
from tests.system.support.platform import platform
from tests.system.support.processes import descendants
from tests.waiting import wait_until

BLANKS = 2


def main() -> None:
    """Run, print, finish."""
    options = report.parsed(report.arguments("memory", __doc__ or ""))
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), "--blanks", str(BLANKS)) as running:
        wait_until(lambda: running.blanks() == BLANKS, "blanks are ready", 90.0)
        time.sleep(1.0 if options.quick else 10.0)
        parts = {name: report.pss_mib(pid) for name, pid in running.pids.items()}
        below = descendants(running.pids["agent"])
        blank = sum(report.pss_mib(pid) for pid in below) / BLANKS
    report.table(
        "idle, PSS", ("process", "MiB"), [*parts.items(), ("all of these", sum(parts.values())), ("one blank", blank)]
    )
    figures = {f"{name}_mb": size for name, size in parts.items()}
    report.finish("memory", figures | {"platform_mib": sum(parts.values()), "blank_mb": blank})


if __name__ == "__main__":
    main()
