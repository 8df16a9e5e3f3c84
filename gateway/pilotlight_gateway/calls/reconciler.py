"""Tells agents which calls are wanted, and asks for the silent ones: frames can be lost, and so can agents."""

from __future__ import annotations

import structlog

from pilotlight_core.bus import Bus, BusDown, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_messages import Reconcile
from pilotlight_gateway.calls.call_book import CallBook
from pilotlight_gateway.limits.call_usage import UsageTracker

SILENT_S = 2.0
"""A call that was sent and not heard of for so long is asked for. One that was granted and not sent (its `StartHook` is
at work) never is: its agent would say that it does not know it, and refuse it when it comes."""
NODE = "node"
"""Where a complaint of the bus names a call, when it is of a whole node."""

log = structlog.get_logger(__name__)


class Reconciler:
    """Of one gateway's calls. If nobody listens at a node, the bus says so under `unheard(…, NODE, node)`."""

    def __init__(self, bus: Bus, book: CallBook, tabs: UsageTracker, *, region: str, gateway: str) -> None:
        self._bus = bus
        self._book = book
        self._tabs = tabs
        self._region = region
        self._gateway = gateway
        self._told: set[tuple[str, str]] = set()
        """Agents (node, incarnation) last told of wanted calls: told once more when there are none."""

    def tell(self, at: float) -> None:
        """One message for each agent that has calls of ours, or had some the last time."""
        wanted: dict[tuple[str, str], dict[str, int]] = {agent: {} for agent in self._told}
        silent: dict[tuple[str, str], dict[str, int]] = {}
        for live in self._book:
            if (grant := live.origin.grant) is not None:
                agent = (grant.node, grant.instance)
                wanted.setdefault(agent, {})[grant.call] = grant.number
                if at - live.heard > SILENT_S:
                    silent.setdefault(agent, {})[grant.call] = grant.number
        for one in self._tabs:  # not wanted any more, but asked for
            if at - one.since > SILENT_S:
                agent = (one.grant.node, one.grant.instance)
                wanted.setdefault(agent, {})
                silent.setdefault(agent, {})[one.grant.call] = one.grant.number
        self._told = {agent for agent, calls in wanted.items() if calls}
        for agent, calls in wanted.items():
            self._tell(agent, tuple(calls), silent.get(agent, {}))

    def _tell(self, agent: tuple[str, str], calls: tuple[str, ...], asked: dict[str, int]) -> None:
        node, instance = agent
        message = Reconcile(gateway=self._gateway, instance=instance, calls=calls, grants=asked)
        complaint = subjects.unheard(self._region, self._gateway, NODE, node)
        try:
            self._bus.publish_nowait(subjects.control(self._region, node), message, reply=complaint)
        except (BusDown, MessageTooLarge) as error:
            log.warning("not reconciled", node=node, calls=len(calls), error=str(error))
