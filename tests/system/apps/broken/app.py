"""A module that can be imported where it is deployed from, and nowhere else."""

from __future__ import annotations

import os

from pilotlight import App

app = App("broken")

if "PL_APP" in os.environ:
    print("this module is about to fail")
    raise ImportError("a package that only the author has")


@app.gpu_function(scaledown_window=1.0, forecast=False)
def never() -> None:
    """Cannot be reached."""
