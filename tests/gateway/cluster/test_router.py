"""The door between homes and origins: what is said goes to the other side, here or at another gateway."""

from __future__ import annotations

from pilotlight_core.model.messages.scheduling import Dropped, Enqueue, Settle, ToHome, ToOrigin
from pilotlight_gateway.cluster.driver_port import NEVER, SOON
from pilotlight_gateway.cluster.router import Outbox, ShardRouter, home_of
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from tests.builders.calls import call, grant
from tests.gateway.driver_port import MemoryDriverPort


class Site:
    """One gateway's router, and its mail."""

    def __init__(self, home: str | None) -> None:
        self.port = MemoryDriverPort()
        self.ownership = MemoryShardOwnership(gateway="gw1", home=ShardOwner(home, 7) if home is not None else None)
        self.outbox = Outbox(self.port, "r")
        self.router = ShardRouter(self.port, self.ownership, self.outbox, gateway="gw1")

    def mail(self) -> list[str]:
        """The subjects on which something was sent."""
        self.outbox.flush()
        return [subject for subject, _ in self.port.sent]


def test_what_is_for_a_home_here_waits_for_its_driver() -> None:
    """In the inbox, and the driver is woken."""
    site = Site("gw1")
    assert site.router.to_home(3, Enqueue(call("a")), 0.0)
    assert list(site.router.home_inbox) == [(3, Enqueue(call("a")))]
    assert site.port.woken() == SOON
    assert site.mail() == []


def test_what_is_for_a_home_elsewhere_goes_with_the_mail() -> None:
    """To the process that owns the shard."""
    site = Site("gw2")
    assert site.router.to_home(3, Enqueue(call("a")), 0.0)
    assert not site.router.home_inbox
    assert site.mail() == ["pl.r.gw.gw2.home"]
    assert site.port.told(ToHome) == [ToHome(shard=3, items=(Enqueue(call("a")),))]


def test_without_a_home_nothing_goes_anywhere() -> None:
    """Nobody is one, or we are without the right to act: whoever speaks repeats itself."""
    nobody, lapsed = Site(None), Site("gw1")
    lapsed.ownership.lease_holds = False
    for site in (nobody, lapsed):
        assert not site.router.to_home(3, Enqueue(call("a")), 0.0)
        assert (list(site.router.home_inbox), site.mail(), site.port.woken()) == ([], [], NEVER)
        assert home_of(site.ownership, "gw1", 3, 0.0) is None


def test_grants_and_refusals_go_to_the_gateway_of_their_call() -> None:
    """Which may be this one."""
    site = Site("gw1")
    dropped = Dropped(call_id="b", gateway="gw2", code="queue_full", detail="no")
    site.router.to_origin("gw1", grant(1))
    site.router.to_origin("gw2", grant(2, gateway="gw2"))
    site.router.to_origin("gw2", dropped)

    assert list(site.router.origin_inbox) == [grant(1)]
    assert site.mail() == ["pl.r.gw.gw2.origin"] * 2
    assert [(told.granted, told.dropped) for told in site.port.told(ToOrigin)] == [
        ((grant(2, gateway="gw2"),), ()),
        ((), (dropped,)),
    ]


def test_a_settlement_of_a_forgotten_call_finds_the_home_that_granted_it() -> None:
    """Elsewhere by its epoch; where that is not known, it is for all homes here."""
    settle = Settle(call_id="a", node="n1", container="c1", grant_number=1)
    there, here = Site("gw2"), Site("gw1")
    there.router.settle(settle, 7)
    assert there.mail() == ["pl.r.gw.gw2.home"]
    for epoch in (7, 0, 5):
        here.router.settle(settle, epoch)
    there.router.settle(settle, 0)
    assert list(here.router.home_inbox) == [(None, settle)] * 3
    assert list(there.router.home_inbox) == [(None, settle)]


def test_a_settlement_for_a_home_that_is_not_known_yet_waits_until_it_is() -> None:
    """The grant of a home that has just begun may be here first."""
    settle = Settle(call_id="a", node="n1", container="c1", grant_number=1)
    site = Site("gw2")
    for epoch in (8, 9):
        site.router.settle(settle, epoch)
    site.router.homes_changed()
    assert site.mail() == []
    site.ownership.home = ShardOwner("gw3", 8)
    site.router.homes_changed()
    site.router.homes_changed()
    assert site.mail() == ["pl.r.gw.gw3.home"]
