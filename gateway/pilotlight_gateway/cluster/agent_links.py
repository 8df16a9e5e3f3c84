"""The ways to agents: over links to those that have one, over the bus to all others.

An agent says on the bus where its ways change (`LinkSwitch`). Until then a new link is held: what it said before over
the bus must come first, since an old credit that came after a call's last frame would take the freed slot again.
While a link stands, credits of its agent on the bus are the same again, and late: they are not read.

The other direction needs no such word: an agent refuses a run that comes after its cancel or after a newer grant, and
no `Reconcile` makes an orphan of a call that has just come. What was sent over a link that then broke may have arrived
or not, as with the bus: the agent is asked (`Reconciler`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import structlog

from pilotlight_core.links import LinkPort
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import Cancel, Reconcile, Run, Window
from pilotlight_core.model.messages.link_messages import LinkSwitch
from pilotlight_core.model.messages.message import Message

AgentKey = tuple[str, str]
"""Node and incarnation; of a gateway "" and its process."""
ON_THE_MACHINE, BETWEEN_HOSTS, OVER_THE_BUS = "machine", "hosts", "bus"
"""The ways there are, as metrics name them."""

log = structlog.get_logger(__name__)


class BusPort(Protocol):
    """The part of a `DriverPort` that sends."""

    def send(self, subject: str, message: Message, *, reply: str = "") -> None: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentLink:
    """A link to an agent, or to the gateway that is the process `instance`, whose `node` is ""."""

    name: str
    node: str
    instance: str
    end: LinkPort
    way: str = ON_THE_MACHINE


class AgentLinks:
    """Sends to agents, and knows which links stand."""

    def __init__(self, port: BusPort, region: str) -> None:
        self._port = port
        self._region = region
        self._links: dict[str, AgentLink] = {}
        """By node: those that are in use."""
        self._begun: dict[str, AgentLink] = {}
        """By name: those that are not in use yet."""
        self._halfway: set[str] = set()
        """Of these, the ones that have either their greeting or the agent's word on the bus."""
        self.runs = dict.fromkeys((ON_THE_MACHINE, BETWEEN_HOSTS, OVER_THE_BUS), 0)
        """Granted calls that were sent, by their way."""

    def __len__(self) -> int:
        return len(self._links)

    def standing(self) -> dict[str, int]:
        """How many links are in use, by way."""
        ways = [link.way for link in self._links.values()]
        return {way: ways.count(way) for way in (ON_THE_MACHINE, BETWEEN_HOSTS)}

    # -- sending -------------------------------------------------------------------------------------------------

    def send_run(self, node: str, instance: str, run: Run) -> None:
        """Send a granted call. `subjects.unheard` of its gateway hears if the bus has no listener.

        Raises:
            BusDown: nothing was sent. MessageTooLarge: it does not fit the bus.
        """
        link = self._links.get(node)
        if link is not None and link.instance == instance:
            link.end.send(run)
            self.runs[link.way] += 1
        else:
            reply = subjects.unheard(self._region, run.gateway, run.call_id, run.grant_number)
            self._port.send(subjects.run(self._region, node, instance), run, reply=reply)
            self.runs[OVER_THE_BUS] += 1

    def send_control(self, node: str, message: Cancel | Window | Reconcile, *, reply: str = "") -> None:
        """Send what is said about calls.

        Raises:
            BusDown, MessageTooLarge: as `send_run`.
        """
        link = self._links.get(node)
        if link is not None:
            link.end.send(message)
        else:
            self._port.send(subjects.control(self._region, node), message, reply=reply)

    def flush(self) -> None:
        """Let go what is due: at the end of a turn."""
        for link in list(self._links.values()):
            link.end.flush()

    # -- what links decide ---------------------------------------------------------------------------------------

    def has(self, node: str, instance: str) -> bool:
        """Whether the agent's link is in use."""
        link = self._links.get(node)
        return link is not None and link.instance == instance

    def is_ahead(self, node: str, instance: str) -> bool:
        """Whether news of an incarnation wait, since the link of the one before is not read to its end.

        Such news prove that the former one is gone, and would end calls whose last frames are in the link.
        """
        link = self._links.get(node)
        return link is not None and link.instance != instance

    def begun(self, link: AgentLink) -> None:
        """An agent is being greeted."""
        self._begun[link.name] = link

    def greeted(self, link: AgentLink) -> None:
        """The agent has greeted back: its link is held, unless its word on the bus was faster."""
        link.end.hold()
        self._come_halfway(link)

    def switched(self, node: str, switch: LinkSwitch) -> None:
        """An agent says on the bus that its ways change here."""
        if switch.over:
            for link in (self._links.get(node), self._begun.get(switch.link)):
                if link is not None and (link.name, link.node) == (switch.link, node):
                    link.end.close("its agent has ended it")
        elif (begun := self._begun.get(switch.link)) is not None and begun.node == node:
            self._come_halfway(begun)

    def _come_halfway(self, link: AgentLink) -> None:
        if link.name not in self._halfway:
            self._halfway.add(link.name)
            return
        self._forget(link)
        if (old := self._links.get(link.node)) is not None:
            old.end.close("its agent has a new one")
        self._links[link.node] = link
        log.info("an agent has a link", node=link.node, instance=link.instance, way=link.way)
        link.end.release()

    def _forget(self, link: AgentLink) -> None:
        self._begun.pop(link.name, None)
        self._halfway.discard(link.name)

    def closed(self, link: AgentLink) -> None:
        """A link has ended: the bus is the way again."""
        self._forget(link)
        if self._links.get(link.node) is link:
            del self._links[link.node]
