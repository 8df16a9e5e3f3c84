"""Both sides of a gateway's calls over one port: a call that stays in its gateway needs one turn each way."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import NO_RESPONDERS
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.errors import ContainerDied
from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, Run
from pilotlight_core.model.messages.link_messages import LinkHello, LinkSwitch
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.messages.scheduling import ToHome
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.call_drivers import CallDrivers
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.cluster.agent_ends import AgentEnds
from pilotlight_gateway.cluster.driver_port import SOON
from pilotlight_gateway.cluster.shard_ownership import MemoryShardOwnership, ShardOwner
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.home.home import QueueLimits
from tests.builders.calls import credit
from tests.builders.nodes import binding
from tests.gateway.calls.quiet_call import QuietCall, quiet_call
from tests.gateway.driver_port import MemoryDriverPort
from tests.memory_link import MemoryLink


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


def linked(site: Site, node: str = "n1", instance: str = "i1") -> MemoryLink:
    """The site with a link to its agent."""
    ends = AgentEnds(site.drivers.links, site.drivers)
    link, hello = MemoryLink(ends), LinkHello(link="l1", gateway="gw1", node=node, instance=instance)
    ends.begin(link, hello)
    ends.received(link, [hello])
    site.hear("pl.r.gw.gw1.reply.*", LinkSwitch(link="l1"))
    return link


def ended(call: str) -> Ended:
    return Ended(call_id=call, grant_number=1, container="c1", outcome=Outcome.OK)


def test_over_a_link_calls_come_and_go_without_the_bus() -> None:
    """What a link brings frees slots as what the bus brings."""
    site = Site()
    link = linked(site)
    site.begin("a")
    site.begin("b")
    site.drivers.take_turn()
    assert [run.call_id for run in link.sent if isinstance(run, Run)] == ["a"]

    site.drivers.on_link("n1", [ended("a")])
    site.drivers.take_turn()
    assert [run.call_id for run in link.sent if isinstance(run, Run)] == ["a", "b"]
    assert not site.runs()


def test_one_message_of_a_link_that_goes_wrong_costs_no_other_of_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream would have a gap, and a slot would stay taken, for what somebody else's call met."""
    site = Site(slots=2)
    linked(site)
    broken, live = site.begin("b"), site.begin("a")
    site.drivers.take_turn()
    monkeypatch.delattr(broken, "call")

    site.drivers.on_link("n1", [ended("b"), ended("a")])
    assert [type(said) for said in live.said] == [CallResult]


def test_while_a_link_stands_credits_of_the_bus_are_not_read() -> None:
    """They are late: an ended call in one would take its slot again. When the link has ended they count."""
    site = Site()
    link = linked(site)
    site.begin("a")
    site.drivers.take_turn()
    site.drivers.on_link("n1", [ended("a")])
    site.credit("a")
    site.begin("b")
    site.drivers.take_turn()
    assert [run.call_id for run in link.sent if isinstance(run, Run)] == ["a", "b"]

    link.close("it broke")
    site.credit()
    site.drivers.on_link("n1", [ended("b")])
    site.begin("c")
    site.drivers.take_turn()
    assert site.runs() == ["c"]


def test_what_comes_over_a_link_is_checked_by_its_node() -> None:
    """As what comes by subject: another node's credit and frame change nothing, and are noted."""
    site = Site()
    linked(site)
    live = site.begin("a")
    site.drivers.take_turn()
    version = live.call.version.id
    site.drivers.on_link("n2", [ended("a"), credit("c1", 99, slots=9, version=version, function="acme:a.f")])

    assert not live.said
    assert site.drivers.guard.faults.counts
    assert site.drivers.homes.statistics()[0].granted == 1


def test_news_of_the_next_incarnation_wait_for_the_last_words_of_the_one_before() -> None:
    """They prove that it is gone, and its answer may be in the link still."""
    site = Site()
    link = linked(site)
    live = site.begin("a")
    site.drivers.take_turn()
    report = NodeReport(node="n1", instance="i2", seq=1, region="r", zone="z", sandbox="process")
    site.hear("pl.r.beat.*", report)
    site.drivers.on_link("n1", [ended("a")])
    assert [type(said) for said in live.said] == [CallResult]

    other = site.begin("b")
    site.drivers.take_turn()
    link.close("read to its end")
    site.hear("pl.r.beat.*", report)
    site.port.at += 2.0  # after the time for last words
    site.drivers.take_turn()
    assert [type(said) for said in other.said] == [ContainerDied]
