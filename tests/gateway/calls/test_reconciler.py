"""Which agents are told of which calls, and what they are asked for."""

from __future__ import annotations

from pilotlight_core.model.messages.call_messages import Grant
from pilotlight_gateway.calls.reconciler import SILENT_S, Reconciler
from pilotlight_gateway.limits.call_usage import CallUsage, OpenUsage
from tests.builders.calls import grant
from tests.gateway.calls.quiet_call import QuietCall, quiet_call


def granted(name: str, at: float, used: Grant) -> QuietCall:
    """A call that was sent."""
    live = quiet_call(name)
    live.origin.begin(at)
    live.origin.granted(used, at)
    live.heard_at = at
    return live


def test_each_agent_is_told_which_calls_are_wanted() -> None:
    """Once more when there are none any more, and then no more."""
    reconciler, live = Reconciler("gw1"), granted("a", 10.0, grant())
    ((node, told),) = reconciler.messages([live], (), 10.5)
    assert (node, told.instance, told.gateway, told.calls, told.grants) == ("n1", "i1", "gw1", ("a",), {})

    ((_, told),) = reconciler.messages([], (), 11.0)
    assert told.calls == ()
    assert reconciler.messages([], (), 11.5) == []


def test_a_silent_call_is_asked_for() -> None:
    """With the grant that was used; as long as it is not silent it is not."""
    reconciler, live = Reconciler("gw1"), granted("a", 10.0, grant())
    ((_, told),) = reconciler.messages([live], (), 10.1 + SILENT_S)
    assert told.grants == {"a": 1}
    live.heard_at = 12.0
    ((_, told),) = reconciler.messages([live], (), 12.5)
    assert told.grants == {}


def test_a_start_that_runs_on_is_asked_for_and_not_wanted() -> None:
    """Its caller has left, and what it takes is still to be heard."""
    left = OpenUsage(CallUsage(), grant(4), since=10.0, expires_at=99.0)
    reconciler = Reconciler("gw1")
    assert reconciler.messages([], (left,), 11.0) == []
    ((_, told),) = reconciler.messages([], (left,), 10.1 + SILENT_S)
    assert (told.calls, told.grants) == ((), {"a": 4})
