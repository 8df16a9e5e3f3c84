"""Whose words an error has, who may read them, and that whoever is told of calls costs none of them anything."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import ContainerDied, FunctionRaised, PilotlightError, Unavailable
from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall, platforms_words, report_ended, report_failed
from pilotlight_gateway.calls.prepared_call import PreparedCall
from tests.builders.calls import prepared_call

SPENT = Spent(ns=1, ppm=1, price="cpu")


class Broken:
    """A sink with a fault."""

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        raise ZeroDivisionError

    def call_failed(self, failed: FailedCall) -> None:
        raise OverflowError


class Counting:
    def __init__(self) -> None:
        self.told: list[str] = []

    def call_ended(self, call: PreparedCall, result: CallResult, stages: dict[str, float], total_ms: float) -> None:
        self.told.append(call.call_id)

    def call_failed(self, failed: FailedCall) -> None:
        self.told.append(failed.code)


def test_a_sink_with_a_fault_costs_no_call_its_answer() -> None:
    """Those behind it are told all the same."""
    call, counting = prepared_call("a"), Counting()
    sinks = (Broken(), counting)
    report_ended(sinks, call, CallResult(output=b"", spent=SPENT), {"execute": 1.0}, 2.0)
    report_failed(sinks, FailedCall("died", "acme", call.version, call, None, 2.0, is_client_gone=False))
    assert counting.told == ["a", "died"]


@pytest.mark.parametrize(
    ("error", "owner", "other"),
    [
        (FunctionRaised("said"), "", ""),
        (ContainerDied("said"), "said", ""),
        (Unavailable("said"), "said", "said"),
    ],
    ids=["a function", "about a function", "the platform"],
)
def test_words_are_for_who_may_read_them(error: PilotlightError, owner: str, other: str) -> None:
    """Of a request that was refused before it was a call nobody else's function is told."""
    assert platforms_words(error, prepared_call("a")) == platforms_words(error, None) == owner
    assert platforms_words(error, prepared_call("a", tenant="other")) == other
