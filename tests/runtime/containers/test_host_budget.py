"""The agent's own sum of what its containers are promised."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_runtime.containers.host_budget import HostBudget, broken_promise
from tests.builders.specs import function_spec

GIB = 2**30
HOST = HostShare(cpu_millis=4000, memory=24 * GIB)
SHARES = st.builds(HostShare, cpu_millis=st.integers(-1, 5000), memory=st.integers(-1, 30 * GIB))


def test_what_there_is_not_is_refused_by_its_name() -> None:
    """Memory first; what a container had is there again when it is gone."""
    budget = HostBudget(HOST)
    budget.take("a", HostShare(cpu_millis=3000, memory=20 * GIB))

    assert budget.refusal(HostShare(cpu_millis=100, memory=5 * GIB)) == "memory_taken"
    assert budget.refusal(HostShare(cpu_millis=2000, memory=GIB)) == "cpu_taken"
    assert budget.refusal(HostShare(cpu_millis=1000, memory=4 * GIB)) == ""
    budget.release("a")
    assert budget.refusal(HOST) == ""
    assert budget.refusal(HostShare(cpu_millis=4000, memory=24 * GIB + 1)) == "memory_taken"


@given(st.lists(st.tuples(SHARES, st.integers(0, 2))))
def test_no_order_of_binds_and_ends_promises_more_than_there_is(steps: list[tuple[HostShare, int]]) -> None:
    """Negative amounts give nobody room."""
    budget, held = HostBudget(HOST), dict[str, HostShare]()
    for number, (share, luck) in enumerate(steps):
        if not budget.refusal(share):
            budget.take(f"c{number}", share)
            held[f"c{number}"] = share
        if not luck and held:
            gone = min(held)
            del held[gone]
            budget.release(gone)

        budget.check_integrity(set(held))
        assert sum(share.memory for share in held.values()) <= HOST.memory
        assert sum(share.cpu_millis for share in held.values()) <= HOST.cpu_millis


def test_a_sum_that_does_not_agree_is_a_defect() -> None:
    """Other containers, or more than there is."""
    budget = HostBudget(HOST)
    budget.take("a", HostShare(cpu_millis=5000))

    with pytest.raises(AssertionError, match="more is promised"):
        budget.check_integrity({"a"})
    with pytest.raises(AssertionError, match="promised to"):
        budget.check_integrity({"b"})


def test_a_function_is_held_to_what_its_container_was_promised() -> None:
    """The manifest is signed, the promise is the controller's: the smaller one counts."""
    share = HostShare(cpu_millis=100, memory=2 * GIB)

    assert broken_promise(function_spec(), share) == ""
    assert broken_promise(function_spec(memory=3 * GIB), share) == (
        "it needs 3.0 GiB of host memory and was promised 2.0 GiB"
    )
    assert broken_promise(function_spec(cpu=1.0), share) == "it needs 1 cores and was promised 0.1"
