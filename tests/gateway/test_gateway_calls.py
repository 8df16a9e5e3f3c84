"""A gateway's part in live calls, put together over a bus."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model.errors import Unavailable
from pilotlight_core.model.ids import parse_call_id, token
from pilotlight_core.model.subjects import SHARDS
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.gateway_calls import GatewayCalls
from pilotlight_gateway.home.home import QueueLimits
from tests.waiting import until


class Notes:
    """A participant beside calls."""

    def __init__(self) -> None:
        self.shards: set[int] = set()

    def begin(self, shard: int, epoch: int, state: bytes) -> None:
        self.shards.add(shard)

    def end(self, shard: int) -> bytes:
        self.shards.remove(shard)
        return b""


@pytest.fixture
def gateway(bus: Bus) -> GatewayCalls:
    name = f"gw{token(6)}"
    bodies = LargeBodies(url="http://origin", budget=ByteBudget(limit=10**6))
    return GatewayCalls(bus, bodies, region="local", name=name, instance=f"{name}-1", limits=QueueLimits())


async def test_a_gateway_takes_calls_while_its_shards_run(gateway: GatewayCalls) -> None:
    """Before there is a lease no call gets an id; then ids carry its epoch, and it is the home of all functions."""
    assert gateway.service.ready() != ""
    with pytest.raises(Unavailable):
        gateway.service.new_id()
    notes = Notes()
    shards = gateway.shards({"notes": notes})
    async with gateway.running(), shards.running():
        await until(lambda: not gateway.service.ready())
        assert parse_call_id(gateway.service.new_id()).epoch == gateway.table.epoch
        await until(lambda: gateway.service.statistics().homes == SHARDS)
        assert notes.shards == set(range(SHARDS))
    assert notes.shards == set()
    assert gateway.service.statistics().homes == 0
