"""The driver of homes: the state that it hands over, what it sends, and that a failing home stops no other."""

from __future__ import annotations

from collections import deque

import msgspec
import pytest

from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant
from pilotlight_core.model.messages.demand import ClassLoad, Demand, Demands, JobBacklog
from pilotlight_core.model.messages.scheduling import (
    CreditsWanted,
    Dropped,
    Enqueue,
    HomeItem,
    HomeState,
    Settle,
    ToHome,
    VersionState,
    Withdraw,
)
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.spec import Priority
from pilotlight_core.model.subjects import shard_of
from pilotlight_gateway.cluster.driver_port import SOON
from pilotlight_gateway.cluster.router import OriginItem
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.home import homes as homes_module
from pilotlight_gateway.home.home import Home, QueueLimits
from pilotlight_gateway.home.homes import Homes, packed
from tests.builders.calls import call, credit
from tests.gateway.driver_port import MemoryDriverPort

SHARD = shard_of("acme:app.fn")


class Heard:
    """A router that keeps what homes say."""

    def __init__(self) -> None:
        self.said: list[tuple[str, OriginItem]] = []

    def to_home(self, shard: int, item: HomeItem, at: float) -> bool:
        raise AssertionError("a home has nothing for a home")

    def to_origin(self, gateway: str, item: OriginItem) -> None:
        self.said.append((gateway, item))

    def settle(self, item: Settle, epoch: int) -> None:
        raise AssertionError("a home settles nothing")


class Site:
    """Homes of every shard, and what they say."""

    def __init__(self, **limits: int) -> None:
        self.port, self.router = MemoryDriverPort(), Heard()
        self.ownership = MemoryShardOwnership(gateway="gw1", home=ShardOwner("gw1", 1))
        self.inbox: deque[tuple[int | None, HomeItem]] = deque()
        self.homes = Homes(
            self.port, self.ownership, self.router, self.inbox,
            region="r", gateway="gw1", limits=QueueLimits(**limits),
        )  # fmt: skip
        self.homes.begin(SHARD, 1, b"")
        self.turn()

    def turn(self, *items: HomeItem) -> list[OriginItem]:
        """What homes say to these."""
        self.inbox.extend((SHARD, item) for item in items)
        self.router.said.clear()
        self.homes.take_turn(self.port.at)
        return [item for _, item in self.router.said]

    def credit(self, seq: int, slots: int = 1) -> None:
        self.homes.on_credit(credit("c1", seq, slots=slots, function="acme:app.fn"), self.port.at)


def test_the_queue_goes_before_what_was_learnt() -> None:
    """If both together are too large to hand over, the calls travel."""
    versions = {f"ver_{n}": VersionState(function="acme:app.fn", tenant="acme", calls=1) for n in range(100)}
    state = HomeState(calls=(call("a"), call("b")), versions=versions)
    whole = msgspec.msgpack.encode(state)

    assert packed(state, len(whole)) == whole
    assert msgspec.msgpack.decode(packed(state, len(whole) - 1), type=HomeState) == HomeState(calls=state.calls)


def test_a_home_grants_in_the_turn_that_delivers_the_call() -> None:
    """The call and a credit are delivered first; the grant goes to the call's gateway."""
    site = Site()
    assert site.port.told(CreditsWanted)
    site.credit(1)
    (grant,) = site.turn(Enqueue(call("a", gateway="gw2")))

    assert isinstance(grant, Grant)
    assert site.router.said == [("gw2", grant)]
    assert (grant.call_id, grant.epoch, grant.grant_number) == ("a", 1, 1)


def test_a_refusal_at_admission_goes_to_the_origin() -> None:
    """The router sends it like every other item, wherever the origin is."""
    site = Site(per_version=1)
    (refused,) = site.turn(Enqueue(call("a")), Enqueue(call("b", gateway="gw2")))

    assert isinstance(refused, Dropped)
    assert (refused.call_id, refused.gateway, refused.code) == ("b", "gw2", "queue_full")
    assert site.turn(Withdraw("a"), Enqueue(call("b"))) == []


def test_a_home_asks_for_its_next_turn() -> None:
    """While calls wait the demand is repeated; without any, only the next report is due."""
    site = Site()
    site.port.woken()
    site.turn(Enqueue(call("a", remaining_ms=60_000.0)))
    assert len(site.port.told(Demands)) == 1
    assert site.port.woken() == pytest.approx(site.port.at + 0.25)

    site.port.at += 0.3
    site.turn()
    assert len(site.port.told(Demands)) == 2


def test_demands_of_a_home_that_are_due_in_a_turn_are_one_message() -> None:
    """An edge of each of two versions, in the turn that delivers their calls."""
    site = Site()
    site.turn(Enqueue(call("a")), Enqueue(call("b", version="ver_2")))
    (message,) = site.port.told(Demands)

    assert (message.gateway, message.shard) == ("gw1", SHARD)
    assert [(demand.version, demand.edge, demand.queued) for demand in message.items] == [
        ("ver_1", True, 1), ("ver_2", True, 1)
    ]  # fmt: skip
    assert [subject for subject, sent in site.port.sent if sent is message] == [f"pl.r.demands.{SHARD}"]
    site.turn()
    assert site.port.told(Demands) == [message]


def test_so_many_demands_that_they_would_not_fit_are_several_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is left out, and none is told twice."""
    monkeypatch.setattr(homes_module, "DEMANDS_AT_MOST", 2)
    site = Site()
    site.turn(*(Enqueue(call(f"a{n}", version=f"ver_{n}")) for n in range(5)))

    told = [[demand.version for demand in message.items] for message in site.port.told(Demands)]
    assert told == [["ver_0", "ver_1"], ["ver_2", "ver_3"], ["ver_4"]]


def test_the_longest_demands_fit_into_a_message() -> None:
    """As many as there may be in one, with the longest names."""
    name = "n" * 63
    loads = {priority.value: ClassLoad(queued=10**6, running=10**6, oldest_ms=1 / 3) for priority in Priority}
    demand = Demand(
        version="v" * 64, tenant=name, gateway="g" * 96, epoch=2**40, queued=10**6, oldest_ms=1 / 3, running=10**6,
        arrivals=10**6, service_ms=1 / 3, edge=True, refused=True, refused_calls=10**6, late=10**6,
        oldest_run_ms=1 / 3, backlog=10**6, held_jobs=10**6, classes=loads, function=f"{name}:{name}.{name}",
    )  # fmt: skip
    message = Demands(gateway="g" * 96, shard=63, items=(demand,) * homes_module.DEMANDS_AT_MOST)

    assert len(encode(message)) < 2**20
    assert decode(encode(message)) == message


def test_jobs_that_wait_behind_those_of_the_home_are_told() -> None:
    """As many as whoever knows them says of the function."""
    site = Site()
    site.homes.backlog_of = {"acme:app.fn": JobBacklog(120, 7)}.__getitem__
    site.turn(Enqueue(call("a")))
    (message,) = site.port.told(Demands)

    assert [(demand.backlog, demand.held_jobs) for demand in message.items] == [(120, 7)]


def test_without_the_lease_or_the_bus_nothing_is_granted() -> None:
    """Items that arrive meanwhile are kept if only the bus was away."""
    site = Site()
    site.port.connected = False
    site.credit(1)
    assert site.turn(Enqueue(call("a"))) == []
    site.port.connected = True
    assert [item.call_id for item in site.turn()] == ["a"]

    site.ownership.lease_holds = False
    assert site.turn(Settle(call_id="a", node="n1", container="c1", grant_number=1), Enqueue(call("b"))) == []


def test_an_end_for_any_home_reaches_the_one_that_granted() -> None:
    """The slot is free, and the next call is granted."""
    site = Site()
    site.credit(1)
    site.turn(Enqueue(call("a")), Enqueue(call("b")))
    site.inbox.append((None, Settle(call_id="a", node="n1", container="c1", grant_number=1)))

    assert [item.call_id for item in site.turn()] == ["b"]


def test_items_of_other_gateways_are_delivered_in_the_next_turn() -> None:
    """Their order is kept."""
    site = Site()
    site.port.woken()
    site.homes.on_mail("", ToHome(shard=SHARD, items=(Enqueue(call("a")), Withdraw("a"), Enqueue(call("b")))), "")
    assert site.port.woken() == SOON
    site.credit(1)
    assert [item.call_id for item in site.turn()] == ["b"]


class Broken(Home):
    """A home in which something went wrong that shows at every turn."""

    def expire(self, at: float) -> list[Dropped]:
        raise KeyError("what is this")


def test_a_home_that_fails_stops_no_other() -> None:
    """The other homes decide, however often the failing one is woken."""
    site = Site()
    for shard in range(8):
        if shard != SHARD:
            site.homes.begin(shard, 1, b"")
            site.homes._homes[shard] = Broken(gateway="gw1", epoch=1)
    site.credit(1)
    site.homes.wake_all()

    assert [item.call_id for item in site.turn(Enqueue(call("a")))] == ["a"]


def test_what_came_for_a_home_is_in_the_state_that_it_hands_over() -> None:
    """Its shard moves before the turn that would deliver it, and nobody repeats a withdrawal."""
    site = Site()
    site.turn(Enqueue(call("a")), Enqueue(call("b")))
    site.inbox.extend([(SHARD, Withdraw("a")), (SHARD + 1, Withdraw("b")), (SHARD, Enqueue(call("c")))])
    site.ownership.home = None
    state = msgspec.msgpack.decode(site.homes.end(SHARD), type=HomeState)

    assert [waiting.call_id for waiting in state.calls] == ["b", "c"]
    assert list(site.inbox) == [(SHARD + 1, Withdraw("b"))]


def test_the_cost_of_a_call_that_ended_is_in_the_state_that_its_home_hands_over() -> None:
    """The next home counts it for the tenant, although no turn has delivered its end."""
    site = Site()
    site.credit(1)
    site.turn(Enqueue(call("a")))
    site.inbox.append((SHARD, Settle(call_id="a", node="n1", container="c1", grant_number=1, cost=5_000.0)))
    site.ownership.home = None
    state = msgspec.msgpack.decode(site.homes.end(SHARD), type=HomeState)

    assert max(max(of.values()) for of in state.counters["acme:app.fn"].values()) >= 5_000.0


class Refusing(Home):
    """A home that cannot take a call."""

    def enqueue(self, call: CallDescriptor, at: float) -> None:
        raise KeyError(call.call_id)


def test_an_item_that_a_home_cannot_take_stops_no_other() -> None:
    """Items behind it are delivered in the same turn."""
    site = Site()
    site.homes.begin(SHARD + 1, 1, b"")
    site.homes._homes[SHARD + 1] = Refusing(gateway="gw1", epoch=1)
    site.credit(1)
    site.inbox.append((SHARD + 1, Enqueue(call("a"))))

    assert [item.call_id for item in site.turn(Enqueue(call("b")))] == ["b"]
