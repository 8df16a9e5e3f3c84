"""The port of calls: what one over another leaves to that one."""

from __future__ import annotations

from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallPort, RelayedCalls


def test_all_but_what_runs_calls_is_left_to_the_calls_below() -> None:
    calls = FakeCalls()
    relayed = RelayedCalls(calls)
    port = {name for name in vars(CallPort) if not name.startswith("_")}
    assert {name for name in vars(relayed) if not name.startswith("_")} == port - {"begin", "run", "stream"}
    assert all(getattr(relayed, name) == getattr(calls, name) for name in port - {"begin", "run", "stream"})
