"""Kept calls as the API shows them."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.tracing.kept_call import KeptAttempt
from pilotlight_gateway.traces.explained_calls import explanation_of, row_of
from tests.builders.kept import AT_NS, STAGES, STEPS, kept_call

SHARED = {
    "function": "vendor:shop.rank",
    "attempts": (KeptAttempt(container="ctr_secret", node="node_secret", outcome="died", reason="why"),),
}


def test_a_row_says_what_took_longest() -> None:
    row = row_of(kept_call(), operator=False)
    assert (row.function, row.version, row.kept, row.longest, row.longest_ms) == (
        "shop.rank", "shop.rank@v3", "slow", "start", 700.0
    )  # fmt: skip
    assert (row.arrived_at, row.total_ms, row.cold_start, row.attempts) == (AT_NS / 1e9, 1_000.0, True, 1)


def test_a_waterfall_has_each_stage_and_the_steps_of_a_start() -> None:
    rows = explanation_of(kept_call(), operator=False).rows
    assert [row.name for row in rows if not row.step_of] == [*STAGES]
    assert [row.name for row in rows if row.step_of == "start"] == [*STEPS]
    assert {row.attempt for row in rows} == {0}  # there was but one


def test_what_an_owner_may_know_is_not_told_to_callers() -> None:
    """Neither which container nor why it ended; of a node nobody is told."""
    shared = explanation_of(kept_call(**SHARED), operator=False)
    told = msgspec.json.encode(shared).decode()
    assert shared.function == "vendor:shop.rank"
    assert [(one.container, one.outcome, one.reason) for one in shared.attempts] == [("", "died", "")]
    assert "ctr_secret" not in told
    assert "node_secret" not in told
    own = explanation_of(kept_call(**SHARED | {"tenant": "vendor"}), operator=False)
    assert [(one.container, one.reason) for one in own.attempts] == [("ctr_secret", "why")]
    assert "node_secret" not in msgspec.json.encode(own).decode()


def test_the_gateway_of_a_call_is_told_to_an_operator() -> None:
    call = kept_call()
    assert (row_of(call, operator=True).gateway, explanation_of(call, operator=True).gateway) == ("gw1", "gw1")
    assert (row_of(call, operator=False).gateway, explanation_of(call, operator=False).gateway) == ("", "")
