"""Python's garbage collector, set up for a process that serves: what was made at the start stays out of its way."""

from __future__ import annotations

import gc

YOUNG = 20_000
"""Objects made before the young are looked at: about a thousand calls, instead of forty."""


def freeze() -> None:
    """Call once, when everything that lives as long as the process has been made.

    Modules, routes and schemas are some hundred thousand objects that no later collection has to walk; without this a
    full one stops the loop for tens of milliseconds, in the middle of somebody's call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)


def freeze_again() -> None:
    """What has been made since will live long too: no later collection walks it. Without a collection of its own."""
    gc.freeze()
