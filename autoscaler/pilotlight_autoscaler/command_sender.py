"""Sends the leader's commands to agents, and the due steps of plans; what is sent is remembered for the next pass.

A command that is lost or refused is decided again. Before a container is bound, its `Binding` is written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec
import structlog

from pilotlight_autoscaler.bindings.binding_terms import binding_of
from pilotlight_autoscaler.observations.pending_commands import PendingBind
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import AddressedCommand
from pilotlight_autoscaler.plans.plan_execution import AgentCommand
from pilotlight_core.bus import Bus, BusError, Lease
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.node_messages import Bind, CommandReply, ContainerCommand, Drain, Keep, Park, Unpark
from pilotlight_core.model.networks.network_targets import given_targets

COMMAND_TIMEOUT_S = 2.0
"""Agents answer a command at once, before they execute it."""
MAX_COMMANDS = 256
"""Unanswered commands at a time; the rest is decided again at the next pass."""

log = structlog.get_logger()


class CommandSender:
    """Use within its `tasks`, one for each command that is not answered yet."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        lease: Lease,
        world: World,
        bindings: BindingBook,
        *,
        region: str,
        count: Callable[[object], None],
    ) -> None:
        """`count` counts each command that is sent."""
        self._bus = bus
        self._registry = registry
        self._lease = lease
        self._world = world
        self._bindings = bindings
        self._region = region
        self._count = count
        self._sending = 0
        self.tasks: asyncio.TaskGroup

    @property
    def room(self) -> int:
        """How many further commands may be sent now."""
        return MAX_COMMANDS - self._sending

    def advance_plans(self, at: float, node: str = "") -> None:
        """Send the due steps of plans under way; if `node` has reported, of those that concern it."""
        due, notes = self._world.executions.advance(self._world, at, node)
        for note in notes:
            log.warning("a plan was given up", what=note)
        for step in due:
            self.start_sending(AddressedCommand(node=step.node, command=step.command), at)

    def start_sending(self, sent: AddressedCommand, at: float) -> None:
        """Send a command in a task, so that a silent node delays no others."""
        if isinstance(sent.command, Bind) and sent.command.container not in self._world.pending:
            self._world.pending[sent.command.container] = PendingBind(bind=sent.command, node=sent.node, at=at)
        elif isinstance(sent.command, Drain):
            self._world.draining[sent.command.container] = at
        elif isinstance(sent.command, Park):
            self._world.parking[sent.command.container] = at
        self._sending += 1
        self._count(sent.command)
        self.tasks.create_task(self._send(sent))

    async def _send(self, sent: AddressedCommand) -> None:
        command: AgentCommand | Keep | Park | Unpark | None = sent.command
        try:
            if isinstance(sent.command, Bind):
                command = await self._bound(sent.node, sent.command)
            if command is None:
                return
            answer = await self._bus.request(subjects.command(self._region, sent.node), command, COMMAND_TIMEOUT_S)
        except BusError as error:
            log.warning(
                "command not answered", node=sent.node, about=subject_of_command(sent.command), error=repr(error)
            )
            self._give_up(sent.command)
            return
        finally:
            self._sending -= 1
        if isinstance(answer, CommandReply) and not answer.ok:
            log.warning("command refused", node=sent.node, about=subject_of_command(sent.command), reason=answer.reason)
            if isinstance(sent.command, Park | Unpark):
                self._give_up(sent.command)
            elif not isinstance(sent.command, Keep):
                self._world.executions.refused(sent.command, answer.reason)
            if isinstance(sent.command, Bind):
                self._world.on_refused(sent.command, answer.reason, time.monotonic())

    def _give_up(self, command: AgentCommand | Keep | Park | Unpark) -> None:
        """The command was lost or refused, or the node drains, which the next report shows."""
        if isinstance(command, Drain):
            self._world.draining.pop(command.container, None)
        elif isinstance(command, Park):
            self._world.parking.pop(command.container, None)
        elif isinstance(command, Unpark):
            self._world.on_stays_parked(command.container, time.monotonic())

    async def _bound(self, node: str, bind: Bind) -> Bind | None:
        """Write what others may believe of the container; the command, with what it pays for.

        It may have waited for minutes behind others: what its tenant may no longer connect to is not in it.

        None if its slice is gone, or this leader's time is over.

        Raises:
            BusError: it may or may not be written.
        """
        binding = self._bindings.live(bind.container)
        if binding is None:  # else the command was lost, and is sent again
            record = self._registry.version(bind.version) or await self._registry.fetch_version(bind.version)
            known, report = self._registry.node_nowait(node), self._world.nodes.get(node)
            labels = known.labels if known is not None else None
            binding = binding_of(bind, record, report, labels) if record is not None else None
            if binding is None:
                self._world.on_refused(bind, "no_such_slice", time.monotonic())
                return None
            await self._bindings.bind(binding)
            if not self._lease.valid(time.monotonic()):
                return None
        tenant = self._registry.tenant_nowait(bind.tenant)
        network = given_targets(bind.network, () if tenant is None else tenant.network)
        return msgspec.structs.replace(bind, core_ppm=binding.core_ppm, gib_ppm=binding.gib_ppm, network=network)


def subject_of_command(command: AgentCommand | Keep | Park | Unpark) -> str:
    return command.container if isinstance(command, ContainerCommand) else command.device
