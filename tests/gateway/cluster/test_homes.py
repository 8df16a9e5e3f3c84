"""The homes of a gateway: what they hand over, and that they do not stop each other."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from pilotlight_core.bus import connect
from pilotlight_core.model.messages.agent_messages import Grant
from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, HomeState, VersionState
from pilotlight_gateway.cluster.homes import Homes, packed
from pilotlight_gateway.cluster.outbox import Outbox
from pilotlight_gateway.home.home import Home, QueueLimits
from tests.builders.calls import call, credit
from tests.waiting import until


def test_the_queue_goes_before_what_was_learnt() -> None:
    """Where both together are too large to be handed over."""
    versions = {f"ver_{n}": VersionState(function="acme:app.fn", tenant="acme", calls=1) for n in range(100)}
    state = HomeState(calls=(call("a"), call("b")), versions=versions)
    whole = msgspec.msgpack.encode(state)

    assert packed(state, len(whole)) == whole
    assert msgspec.msgpack.decode(packed(state, len(whole) - 1), type=HomeState) == HomeState(calls=state.calls)


class Broken(Home):
    """A home in which something went wrong that shows at every turn."""

    def expire(self, at: float) -> list[Dropped]:
        raise KeyError("what is this")


class Listener:
    """Owns every shard, and hears what homes say."""

    def __init__(self) -> None:
        self.grants: list[Grant] = []

    def mine(self, shard: int, at: float) -> int | None:
        return 1

    def granted(self, grant: Grant, at: float) -> None:
        self.grants.append(grant)

    def dropped(self, dropped: Dropped) -> None:
        raise AssertionError(dropped)


async def test_a_home_that_fails_stops_no_other(server_url: str) -> None:
    """However often it is stirred beside them."""
    listener = Listener()
    options: dict[str, Any] = {"region": "r", "gateway": "gw1", "limits": QueueLimits()}
    async with connect(server_url, name="homes") as bus:
        homes = Homes(bus, listener, Outbox(bus, "r"), **options)
        homes.ownership = listener
        for shard in range(8):
            homes.begin(shard, 1, b"")
            if shard != 7:
                homes._homes[shard] = Broken(gateway="gw1", epoch=1)
        at = time.monotonic()
        homes._homes[7].credit(credit(), at + 60.0)  # fresh, however long a busy machine writes the others' tracebacks
        for n in range(3):
            homes.tell(7, Enqueue(call(f"a{n}")), at)
            homes.stir_all()
        homes.pump()

        await until(lambda: listener.grants)
        assert homes._timer is not None
        homes.stop()
