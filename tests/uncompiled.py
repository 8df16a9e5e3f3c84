"""Tests that hold on plain Python alone: `make test-compiled` leaves them out.

No plain class inherits from a compiled one, compiled functions are bound to each other, and native classes take no
attribute that they do not declare. Nothing else belongs here: a test that fails compiled and needs none of these has
found a fault.
"""

from __future__ import annotations

from collections.abc import Mapping

SOURCES = "reads the sources of imported modules, by their paths in the checkout"
INHERITS = "what it breaks on purpose inherits from a compiled class"
REPLACES = "replaces a method of a compiled object, or takes an attribute from it"
BY_NAME = "replaces a function or a figure by its name"
STANDS_IN = "hands in an object that only looks like one of a compiled class"
PLAIN_ONLY: Mapping[str, str] = {
    "tests/autoscaler/passes/test_quarantine.py::test_a_version_is_tried_with_what_is_remembered": INHERITS,
    "tests/autoscaler/policy/test_plain_wish.py::test_each_wish_of_a_simulation": INHERITS,
    "tests/core/bus/test_nats_internals.py": SOURCES,
    "tests/gateway/bodies/test_body_worker.py::test_too_many_values_are_refused": BY_NAME,
    "tests/gateway/calls/test_origins.py::test_a_call_that_goes_wrong_stops_no_other": INHERITS,
    "tests/gateway/home/test_homes.py::test_a_home_that_fails_stops_no_other": INHERITS,
    "tests/gateway/home/test_homes.py::test_an_item_that_a_home_cannot_take_stops_no_other": INHERITS,
    "tests/gateway/http/calls/test_warm_call.py::test_a_bug_costs": REPLACES,
    "tests/gateway/http/calls/test_warm_call.py::test_a_call_that_is_refused_within": STANDS_IN,
    "tests/gateway/http/test_uvicorn_internals.py": SOURCES,
    "tests/gateway/test_call_drivers.py::test_one_message_of_a_link": REPLACES,
    "tests/runtime/containers/blanks/test_base_environment.py::test_everything_that_a_guest_imports": SOURCES,
    "tests/runtime/containers/test_container_start.py::test_a_guest_hands_over": STANDS_IN,
    "tests/runtime/containers/files/test_erased_tenants.py::test_what_cannot_be_deleted_yet": BY_NAME,
    "tests/runtime/containers/files/test_node_weights.py::test_an_empty_file_is_as_good": REPLACES,
    "tests/runtime/containers/files/test_node_weights.py::test_what_must_go_while_it_is_read": BY_NAME,
    "tests/runtime/containers/files/test_page_cache.py::test_a_large_file_is_looked_at": BY_NAME,
    "tests/runtime/containers/files/test_page_cache.py::test_where_nothing_is_locked": REPLACES,
    "tests/runtime/containers/test_container_start.py::test_a_guest_says_each_of_its_steps_once": STANDS_IN,
    "tests/runtime/containers/test_container_start.py::test_no_sandbox_waits_for_a_build": STANDS_IN,
    "tests/runtime/containers/test_start_counts.py": STANDS_IN,
    "tests/simulation/test_mutants.py": INHERITS,
}
"""The beginning of a test's id -> why it cannot run on compiled modules."""


def why_plain(test: str) -> str | None:
    """The reason for which a test is left out; None if it runs."""
    return next((why for name, why in PLAIN_ONLY.items() if test.startswith(name)), None)
