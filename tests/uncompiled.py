"""Tests that hold on plain Python alone: `make test-compiled` leaves them out.

Compiled functions are bound to each other when they are compiled, and native classes take no attribute that they do
not declare. Nothing else belongs here: a test that fails compiled without needing either has found a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

PLAIN_ONLY: Mapping[str, str] = {}
"""The beginning of a test's id -> why it cannot run on compiled modules."""


def why_plain(test: str) -> str | None:
    """The reason for which a test is left out; None if it runs."""
    return next((why for name, why in PLAIN_ONLY.items() if test.startswith(name)), None)
