"""Calls that another gateway has are found by their ids."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Unavailable, UnknownCall
from pilotlight_core.model.ids import new_call_id, token
from pilotlight_core.model.messages.scheduling import AskCall, CallReply
from pilotlight_gateway.cluster import remote_lookup
from pilotlight_gateway.cluster.remote_lookup import RemoteLookup
from pilotlight_gateway.cluster.shard_plan import GatewayMember
from pilotlight_gateway.cluster.shard_table import ShardTable

CLIENTS = "cid_12345678"
OF_TWO = f"call_local_6_{'a' * 20}"
"""As the gateway `two` makes them."""


class Cluster:
    """Our lookup, and two other gateways, `two` of epoch 6 and `three` of epoch 7, as far as they listen."""

    def __init__(self, bus: Bus, other: Bus) -> None:
        self._other = other
        suffix = token(8)
        self.names = {name: f"{name}-{suffix}" for name in ("one", "two", "three")}
        self.table = ShardTable(self.names["one"], self)
        self.epoch = 5
        self.live("one", "two", "three")
        self.lookup = RemoteLookup(bus, self.table, region="local")
        self.asked: list[AskCall] = []

    def valid(self, at: float) -> bool:
        return True

    def live(self, *names: str) -> None:
        """These gateways live now."""
        epochs = {"one": 5, "two": 6, "three": 7}
        self.table.see_members(GatewayMember(name, self.names[name], epochs[name]) for name in names)

    async def listen(self, name: str, told: Callable[[AskCall], CallReply | None]) -> None:
        """A gateway answers what it is asked; None: it does not."""

        def answer(_subject: str, message: object, reply: str) -> None:
            assert isinstance(message, AskCall)
            self.asked.append(message)
            if (said := told(message)) is not None:
                self._other.publish_nowait(reply, said)

        await self._other.subscribe(subjects.ask("local", self.names[name]), answer)
        await self._other.flush()


@pytest.fixture
def cluster(bus: Bus, other: Bus) -> Cluster:
    return Cluster(bus, other)


def has(_: AskCall) -> CallReply:
    return CallReply(status=CallStatus(id="found", state="running", version="a.f@v1", age_ms=1.0))


def has_not(_: AskCall) -> CallReply:
    return CallReply()


def is_silent(_: AskCall) -> None:
    return None


async def test_the_gateway_whose_epoch_the_id_carries_is_asked(cluster: Cluster) -> None:
    """And no other one; a cancel goes with the question."""
    await cluster.listen("two", has)
    await cluster.listen("three", has_not)
    call_id = new_call_id("local", 6, 0.0)
    told = await cluster.lookup.ask("acme", call_id, cancel=True)
    assert told.status is not None
    assert cluster.asked == [AskCall(tenant="acme", call_id=call_id, cancel=True)]


async def test_a_clients_id_is_asked_for_everywhere(cluster: Cluster) -> None:
    """It names no gateway."""
    await cluster.listen("two", has_not)
    await cluster.listen("three", has)
    told = await cluster.lookup.ask("acme", CLIENTS)
    assert told.status is not None
    assert len(cluster.asked) == 2


@pytest.mark.parametrize("name", [CLIENTS, OF_TWO])
async def test_what_nobody_has_is_unknown(cluster: Cluster, name: str) -> None:
    """Everybody who may have it says so."""
    await cluster.listen("two", has_not)
    await cluster.listen("three", has_not)
    with pytest.raises(UnknownCall) as caught:
        await cluster.lookup.ask("acme", name)
    assert caught.value.wire_code == "unknown_call"


@pytest.mark.parametrize("name", [CLIENTS, OF_TWO])
async def test_who_may_have_it_and_does_not_answer_is_no_proof(
    cluster: Cluster, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked for again in a moment."""
    monkeypatch.setattr(remote_lookup, "ANSWER_S", 0.1)
    await cluster.listen("two", is_silent)
    await cluster.listen("three", has_not)
    with pytest.raises(Unavailable):
        await cluster.lookup.ask("acme", name)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(6, "call_lost"), (5, "unknown_call"), (99, "unknown_call")],
)
async def test_a_call_of_nobody_who_lives(cluster: Cluster, epoch: int, code: str) -> None:
    """Its gateway is gone, it would be ours, or no gateway ever had such an epoch: nobody is asked."""
    cluster.live("one", "three")
    with pytest.raises(UnknownCall) as caught:
        await cluster.lookup.ask("acme", new_call_id("local", epoch, 0.0))
    assert (caught.value.wire_code, cluster.asked) == (code, [])
