"""Messages to agents that say which calls are wanted and ask for silent ones: frames can be lost, and so can agents."""

from __future__ import annotations

from collections.abc import Iterable

from pilotlight_core.model.messages.call_messages import Reconcile
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.cluster.agent_links import AgentKey
from pilotlight_gateway.limits.call_usage import OpenUsage

SILENT_S = 2.0
"""A call is asked for when its agent has sent nothing for so long, but never before it was sent (its `StartHook` runs):
its agent would not know it, and would refuse it when it comes."""


class Reconciler:
    """For the calls of one gateway. Pure."""

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._wanted: set[AgentKey] = set()
        """Agents whose last message named calls: they get one more when there are none."""

    def messages(
        self, calls: Iterable[InFlightCall], left: Iterable[OpenUsage], at: float
    ) -> list[tuple[str, Reconcile]]:
        """Pairs of node and message, for agents that have our calls or starts that run on, or had some last time."""
        wanted: dict[AgentKey, dict[str, int]] = {agent: {} for agent in self._wanted}
        silent: dict[AgentKey, dict[str, int]] = {}
        for live in calls:
            if (grant := live.origin.grant) is not None:
                agent = (grant.node, grant.instance)
                wanted.setdefault(agent, {})[grant.call_id] = grant.grant_number
                if at - live.heard_at > SILENT_S:
                    silent.setdefault(agent, {})[grant.call_id] = grant.grant_number
        for one in left:  # not wanted any more, but asked for
            if at - one.since > SILENT_S:
                agent = (one.grant.node, one.grant.instance)
                wanted.setdefault(agent, {})
                silent.setdefault(agent, {})[one.grant.call_id] = one.grant.grant_number
        self._wanted = {agent for agent, names in wanted.items() if names}
        return [
            (
                agent[0],
                Reconcile(
                    gateway=self._gateway, instance=agent[1], calls=tuple(names), grants=silent.get(agent, {})
                ),
            )
            for agent, names in wanted.items()
        ]  # fmt: skip
