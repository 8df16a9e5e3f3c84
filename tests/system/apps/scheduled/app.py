"""Functions that run by themselves."""

from __future__ import annotations

from pilotlight import App, Cron, Period, method

app = App("scheduled")


@app.gpu_function(schedule=Period(seconds=2), scaledown_window=120)
def beat() -> str:
    """Often, and seen in the logs."""
    print("beat", flush=True)
    return "beat"


@app.gpu_function(schedule=Cron("0 6 * * *", tz="Europe/Berlin"))
def nightly(rows: int = 3) -> int:
    """Not while a test runs, or once."""
    return rows


@app.gpu_function
class Report:
    """A method has a schedule, another has none."""

    @method(schedule=Period(seconds=3))
    def refresh(self) -> str:
        return "fresh"

    @method()
    def read(self) -> str:
        return "read"
