"""Tests that hold on plain Python alone: `make test-compiled` leaves them out.

Plain classes inherit from no compiled one, compiled functions are bound to each other, and native classes take no attribute that they do
not declare. Nothing else belongs here: a test that fails compiled without needing either has found a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

PLAIN_ONLY: Mapping[str, str] = {
    "tests/gateway/bodies/test_body_worker.py::test_too_many_values_are_refused": "replaces a function by its name",
    "tests/gateway/calls/test_origins.py::test_a_call_that_goes_wrong": "its broken origin inherits from a compiled class",
    "tests/core/bus/test_nats_internals.py": "reads the sources of imported modules, by their paths in the checkout",
    "tests/gateway/http/test_uvicorn_internals.py": "reads the sources of imported modules, by their paths in the checkout",
    "tests/simulation/test_mutants.py": "mutants inherit from the parts that they break, which are compiled classes",
}
"""The beginning of a test's id -> why it cannot run on compiled modules."""


def why_plain(test: str) -> str | None:
    """The reason for which a test is left out; None if it runs."""
    return next((why for name, why in PLAIN_ONLY.items() if test.startswith(name)), None)
