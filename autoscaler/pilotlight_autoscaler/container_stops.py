"""Stops of single containers that people ask for, and gateways for secrets that were set anew.

One that is to be replaced first does not count from the first question on, so that another is started beside it. It
serves, and keeps its place, until one of its version is ready that stays; then it is told to end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.bus import Bus, BusDown, BusTimeout, NoResponders
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.controller_questions import ContainerStopReply, StopContainer
from pilotlight_core.model.messages.node_messages import CommandReply, ContainerReport, ContainerState, Drain

ANSWER_S = 2.0
"""Agents answer a command at once, before they execute it."""


class ContainerStops:
    """Passes stops on to the nodes that report the container."""

    def __init__(self, bus: Bus, world: World, *, region: str, stop_grace_s: float) -> None:
        self._bus = bus
        self._world = world
        self._region = region
        self._grace_ms = stop_grace_s * 1000.0

    async def stop(self, asked: StopContainer, epoch: int) -> ContainerStopReply:
        """Tell the container to end, as the leader of `epoch`; what its node said."""
        within_ms = self._grace_ms if asked.within_ms is None else asked.within_ms
        at = time.monotonic()
        there = [(node, each) for node, each in self._world.containers(at) if each.state is not ContainerState.GONE]
        named = [
            (node, each) for node, each in there if each.id == asked.container and asked.tenant in ("", each.tenant)
        ]
        if named and asked.replace_first and not self._is_replaced(named[0][1], there):
            self._world.replacing[asked.container] = at
            self._world.changed.add(named[0][1].version)
            failing = self._world.backoff.is_failing(named[0][1].version)
            return ContainerStopReply(reason="replacing", failing=failing)
        nodes = [node for node, _ in named]
        reason = "gone"
        for node in nodes:  # several, if one of them lies
            command = Drain(epoch=epoch, container=asked.container, within_ms=within_ms, reason=asked.reason)
            reason = await self._send(node, command)
            if not reason:
                self._world.draining[asked.container] = time.monotonic()
                self._world.replacing.pop(asked.container, None)
                return ContainerStopReply(node=node, within_ms=within_ms)
        return ContainerStopReply(reason=reason)

    def _is_replaced(self, one: ContainerReport, there: Iterable[tuple[str, ContainerReport]]) -> bool:
        """Whether another of its version is ready, and stays."""
        nodes, leaving = self._world.nodes, self._world.draining.keys() | self._world.replacing.keys()
        return any(
            each.version == one.version
            and each.id != one.id
            and each.id not in leaving
            and each.state is ContainerState.READY
            and not nodes[node].draining
            for node, each in there
        )

    async def _send(self, node: str, command: Drain) -> str:
        """Why it was not obeyed; "": it was."""
        try:
            answer = await self._bus.request(subjects.command(self._region, node), command, ANSWER_S)
        except (BusDown, BusTimeout, NoResponders):
            return "silent"
        if isinstance(answer, CommandReply):
            return "" if answer.ok else "gone" if answer.reason == "gone" else "silent"
        return "silent"
