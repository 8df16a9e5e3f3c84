"""Both sides of a gateway's calls over one port: a call that stays in its gateway needs one turn each way."""

from __future__ import annotations

from pilotlight_core.bus import NO_RESPONDERS
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, Run
from pilotlight_core.model.messages.scheduling import ToHome
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.driver_port import SOON
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from tests.builders.calls import credit
from tests.builders.nodes import binding
from tests.gateway.calls.quiet_call import QuietCall, quiet_call
from tests.gateway.driver_port import MemoryDriverPort


class Site:
    """A gateway whose only container has `slots`, and which may be the home."""

    def __init__(self, home: str = "gw1", slots: int = 1) -> None:
        self.port, self.slots, self._seq = MemoryDriverPort(), slots, 0
        self.ownership = MemoryShardOwnership(gateway="gw1", home=ShardOwner(home, 1))
        bodies = LargeBodies(url="http://gw1", budget=ByteBudget(limit=10**6))
        self.bindings = MemoryBindings()
        self.bindings.bind(binding("c1", quiet_call().call.version.id, function="acme:a.f", slots=slots))
        self.drivers = CallDrivers(
            self.port, self.ownership, FleetView(), bodies, self.bindings, region="r", gateway="gw1",
            limits=QueueLimits(),
        )  # fmt: skip
        self.drivers.homes.begin(quiet_call().shard, 1, b"")
        self.drivers.take_turn()
        self.credit()

    def credit(self, *held: str) -> None:
        self._seq += 1
        live = quiet_call()
        self.hear(
            "pl.r.credit.*.*",
            credit("c1", self._seq, *held, slots=self.slots, version=live.call.version.id, function="acme:a.f"),
        )

    def hear(self, subject: str, message: object, reply: str = "") -> None:
        self.drivers.handlers()[subject](subject.replace("*", "n1"), message, reply)

    def begin(self, name: str) -> QuietCall:
        live = quiet_call(name, at=self.port.at)
        self.drivers.origins.begin(live)
        return live

    def runs(self) -> list[str]:
        return [run.call_id for run in self.port.told(Run)]


def test_a_local_call_takes_one_turn_to_its_container_and_one_to_the_next() -> None:
    """The home hears, grants, and the origin sends, all in a turn; what comes up in it is not put off."""
    site = Site()
    first = site.begin("a")
    site.begin("b")
    assert (site.port.woken(), site.runs()) == (SOON, [])
    site.drivers.take_turn()
    assert site.runs() == ["a"]

    (run,) = site.port.told(Run)
    ended = Ended(call_id="a", grant_number=run.grant_number, container="c1", outcome=Outcome.OK)
    site.hear("pl.r.gw.gw1.reply.*", ended)
    assert [type(said) for said in first.said] == [CallResult]
    site.drivers.take_turn()
    assert site.runs() == ["a", "b"]


def test_what_an_agent_says_in_order_is_heard_in_order() -> None:
    """It refuses a call and then tells of its room: the room is what was said last."""
    site = Site()
    site.begin("a")
    site.drivers.take_turn()
    site.hear("pl.r.gw.gw1.reply.*", Refused(call_id="a", grant_number=1, container="c1", reason=Refusal.DRAINING))
    site.credit()
    site.drivers.take_turn()
    assert site.runs() == ["a", "a"]


def test_a_node_at_which_nobody_listens_has_no_room() -> None:
    """The bus says so of a run, or of a whole node: the call waits until its container speaks."""
    site = Site()
    site.begin("a")
    site.drivers.take_turn()
    site.drivers.handlers()["pl.r.gw.gw1.unheard.*.*"]("pl.r.gw.gw1.unheard.a.1", NO_RESPONDERS, "")
    site.drivers.handlers()["pl.r.gw.gw1.unheard.*.*"]("pl.r.gw.gw1.unheard.node.n1", NO_RESPONDERS, "")
    site.drivers.take_turn()
    assert site.runs() == ["a"]
    site.credit()
    site.drivers.take_turn()
    assert site.runs() == ["a", "a"]


def test_while_the_bus_is_away_the_drivers_stand_still() -> None:
    """No turn is without an end, and all goes on when it is back."""
    site = Site(slots=3)
    site.begin("a")
    site.port.connected = False
    site.drivers.take_turn()
    site.port.connected = True
    site.drivers.reconnected()
    assert site.port.woken() == SOON
    site.drivers.take_turn()
    assert site.runs() == ["a"]


def test_a_call_whose_home_is_elsewhere_goes_with_the_mail_of_the_turn() -> None:
    """All that came up for it before is one message."""
    site = Site(home="gw2")
    for name in ("a", "b"):
        site.begin(name)
    site.drivers.take_turn()
    (mail,) = site.port.told(ToHome)
    assert len(mail.items) == 2
