"""A gateway's recorder, tallies and traces are one: what is kept is an exemplar of what is counted."""

from __future__ import annotations

from pilotlight_core.bus import Bus
from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.tracing.trace_context import own_trace_id
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.call_counting import CallCounting
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.gateway_calls import GatewayCalls
from pilotlight_gateway.home.home import QueueLimits
from pilotlight_gateway.metrics.gateway_metrics import GatewayMetrics
from tests.builders.calls import prepared_call
from tests.builders.kept import CALL_ID
from tests.waiting import until


async def test_a_call_is_counted_kept_and_shown(bus: Bus) -> None:
    """Through the running parts, over a real bus."""
    bodies = LargeBodies(url="http://127.0.0.1:1", budget=ByteBudget(limit=1_000))
    calls = GatewayCalls(
        bus, bodies, region="local", name="gw", instance="gw-1", limits=QueueLimits()
    )  # fmt: skip
    counting = CallCounting(bus, calls, GatewayMetrics(), 0.0, region="local", name="gw")
    call = prepared_call("call_local_1_00000000000000000001")
    async with counting.running():
        counting.recorder.call_arrived(call)
        counting.recorder.call_failed(Unavailable("It is full."), call)
        await until(lambda: counting.recorder.tallies.calls == 1)
        window = await counting.desk.window("acme:app.fn")
    assert window.tally.failures == {"no_capacity": 1}
    assert [each.gateway for each in window.gateways] == ["gw"]
    shown = ProcessMetrics(counting.collect).render("application/openmetrics-text")[0].decode()
    assert 'pilotlight_calls_total{code="no_capacity",outcome="error"} 1.0' in shown
    assert 'trace_id="' in shown
    counting.tracing.keeper.note_sampled(12.0, CALL_ID, 1.8e9)
    shown = ProcessMetrics(counting.collect).render("application/openmetrics-text")[0].decode()
    assert f'trace_id="{own_trace_id(CALL_ID)}"' in shown
    assert "pilotlight_tally_functions 1.0" in shown
