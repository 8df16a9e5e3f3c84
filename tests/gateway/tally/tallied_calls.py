"""Calls that tests of tallies count, and a clock that they move."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.spec import SLO, VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_sink import FailedCall
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.tally.tallies import Tallies
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method, version_record

MINUTE = 60_000_000_000
NOON = 1_790_000_040_000_000_000


class WallClock:
    """Unix nanoseconds."""

    def __init__(self, at_ns: int = NOON - NOON % (10 * MINUTE)) -> None:
        self.at_ns = at_ns

    def __call__(self) -> int:
        return self.at_ns

    def pass_s(self, seconds: float) -> None:
        self.at_ns += int(seconds * 1e9)


def version(name: str = "fn", number: int = 1, tenant: str = "acme", **slo: Any) -> VersionRecord:
    spec = function_spec(name, method(), slo=SLO(**slo))
    return version_record(spec, id=f"ver_{tenant}_{name}_{number}", tenant=tenant, app="app")


def end(tallies: Tallies, of: VersionRecord, total_ms: float = 10.0, name: str = "call", **more: Any) -> PreparedCall:
    """A call arrives and ends well at once."""
    call = prepared_call(name, version=of, input=b"12345")
    tallies.call_arrived(of)
    finish(tallies, call, total_ms, **more)
    return call


def finish(
    tallies: Tallies, call: PreparedCall, total_ms: float, stages: dict[str, float] | None = None, **more: Any
) -> None:
    """A call that arrived ends well."""
    fields: dict[str, Any] = {"output": b"123", "spent": Spent(ns=2_000_000, ppm=500_000, price="h100", batch_size=4)}
    tallies.call_ended(call, CallResult(**fields | more), stages or {"queue": 1.0, "execute": total_ms - 1.0}, total_ms)


def fail(tallies: Tallies, of: VersionRecord, code: str, total_ms: float = 5.0, *, gone: bool = False) -> None:
    """A call arrives and fails."""
    tallies.call_arrived(of)
    call = prepared_call(version=of)
    tallies.call_failed(FailedCall(code, "acme", of, call, None, total_ms, is_client_gone=gone))
