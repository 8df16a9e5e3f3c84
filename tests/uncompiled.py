"""Tests that hold on plain Python alone: `make test-compiled` leaves them out.

No plain class inherits from a compiled one, compiled functions are bound to each other, and native classes take no
attribute that they do not declare. Nothing else belongs here: a test that fails compiled and needs none of these has
found a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

SOURCES = "reads the sources of imported modules, by their paths in the checkout"
INHERITS = "what it breaks on purpose inherits from a compiled class"
PLAIN_ONLY: Mapping[str, str] = {
    "tests/core/bus/test_nats_internals.py": SOURCES,
    "tests/gateway/bodies/test_body_worker.py::test_too_many_values_are_refused": "replaces a function by its name",
    "tests/gateway/calls/test_origins.py::test_a_call_that_goes_wrong_stops_no_other": INHERITS,
    "tests/gateway/http/test_uvicorn_internals.py": SOURCES,
    "tests/simulation/test_mutants.py": INHERITS,
}
"""The beginning of a test's id -> why it cannot run on compiled modules."""


def why_plain(test: str) -> str | None:
    """The reason for which a test is left out; None if it runs."""
    return next((why for name, why in PLAIN_ONLY.items() if test.startswith(name)), None)
