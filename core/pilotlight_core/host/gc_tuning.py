"""Settings of Python's garbage collector for server processes."""

from __future__ import annotations

import gc

YOUNG = 20_000
"""Allocations before a collection of the youngest generation: about a thousand calls, instead of forty."""


def freeze() -> None:
    """Exempt all present objects from collections; call it once, at the end of the start.

    Modules, routes and schemas are some hundred thousand objects. Otherwise a full collection would walk them and stop
    the loop for tens of milliseconds.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)


def freeze_again() -> None:
    """Exempt later long-lived objects too, without a collection."""
    gc.freeze()


def collect_young() -> None:
    """Look at what is new, for whoever replaces thousands of objects a second: often, and so for a moment each time.

    What goes makes room for as many new ones before a collection is due by itself, which then finds all of them.
    """
    gc.collect(0)
