"""Answers servers of the bus that ask whom to let in, and agents that renew their identities.

Whoever memory refuses is refused. Who is let in is so by what the bus has on record at that instant: once a node's
revocation is written, no gateway lets it in again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import structlog

from pilotlight_core.bus import Bus, BusError, bus_users
from pilotlight_core.bus.nkeys import Nkey
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput, PilotlightError
from pilotlight_core.model.ids import check_name
from pilotlight_core.model.messages.node_messages import NodeRenewal, RenewNode
from pilotlight_core.model.records.nodes import NodeRecord
from pilotlight_gateway.nodes.admission_claims import (
    AdmissionAsk,
    BadAdmission,
    admitted,
    read_ask,
    refused_admission,
)
from pilotlight_gateway.nodes.node_book import renew_node
from pilotlight_gateway.tenancy.registry_port import NodeRegistry

QUEUE = "admission"
AT_ONCE = 256
"""Of all; a server that gets no answer refuses, and the client tries again."""
OF_A_NODE = 2
TELL_EVERY_S = 60.0
TOLD_AT_MOST = 1_000
AGENT = "agent "
"""What stands before its node in the name that an agent gives its connection."""

log = structlog.get_logger(__name__)


def why_not_admitted(asked: AdmissionAsk, node: str, record: NodeRecord | None, at: float) -> str:
    """Why a connection is not let in as a node's at the unix second `at`; "": it is."""
    if record is None:
        return f"there is no node {node}"
    if why := record.why_out(at):
        return f"{node}: {why}"
    if asked.key not in record.keys:
        return f"{node} has another key"
    return "" if asked.is_proved else f"{node}: the signature is wrong"


def named_node(asked: AdmissionAsk) -> str:
    """The node that a client says it is the agent of; "": none."""
    name = asked.name.removeprefix(AGENT) if asked.name.startswith(AGENT) else ""
    try:
        return check_name(name, "node")
    except BadInput:
        return ""


class NodeAdmission:
    """While `running` is open, a gateway answers; several share what is asked. `wall`: unix seconds."""

    def __init__(
        self, bus: Bus, registry: NodeRegistry, issuer: Nkey, *, region: str, wall: Callable[[], float] = time.time
    ) -> None:
        self._bus = bus
        self._registry = registry
        self._issuer = issuer
        self._region = region
        self._wall = wall
        self._busy: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._told: dict[str, float] = {}
        """Reasons, and when each was last written to the log, the longest ago first."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with asyncio.TaskGroup() as group:

            def ask(_: str, data: Any, reply: str) -> None:
                if isinstance(data, bytes) and reply and len(self._tasks) < AT_ONCE:
                    self._start(group, self._admit(data, reply))

            def renew(subject: str, message: Any, reply: str) -> None:
                node = subjects.node_of(subject)
                # A gateway may publish where a node may not: it answers into that node's inbox alone.
                if not isinstance(message, RenewNode) or not reply.startswith(f"{bus_users.agent_inbox(node)}."):
                    return
                if self._busy[node] < OF_A_NODE and len(self._tasks) < AT_ONCE:
                    self._busy[node] += 1
                    self._start(group, self._renew(node, message, reply))

            asks = await self._bus.subscribe(bus_users.ADMISSIONS, ask, queue=QUEUE, read=bytes)
            renewals = await self._bus.subscribe(subjects.renew(self._region), renew, queue=QUEUE)
            try:
                yield
            finally:
                await asks.unsubscribe()
                await renewals.unsubscribe()
                for task in self._tasks:
                    task.cancel()

    def _start(self, group: asyncio.TaskGroup, work: Any) -> None:
        task = group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _admit(self, data: bytes, reply: str) -> None:
        try:
            self._bus.publish_data(reply, await self._answer(read_ask(data)))
        except BadAdmission as error:
            log.warning("a server of the bus asked what cannot be read", error=str(error))
        except (BusError, PilotlightError) as error:
            log.warning("a connection of the bus was left waiting", error=str(error))
        except Exception:
            log.exception("a connection of the bus could not be answered for")

    async def _answer(self, asked: AdmissionAsk) -> bytes:
        at, node = self._wall(), named_node(asked)
        if not node:
            return self._refused(asked, "it is no agent's", at)
        if not (why := why_not_admitted(asked, node, self._registry.node_nowait(node), at)):
            why = why_not_admitted(asked, node, await self._registry.node(node), at)
        return self._refused(asked, why, at) if why else admitted(asked, bus_users.agent(node), self._issuer, at)

    def _refused(self, asked: AdmissionAsk, why: str, at: float) -> bytes:
        # Who is refused tries again ten times a second.
        if at - self._told.get(why, float("-inf")) >= TELL_EVERY_S:
            log.info("a connection is not let in", name=asked.name[:100], reason=why)
            self._told.pop(why, None)
            self._told[why] = at
            if len(self._told) > TOLD_AT_MOST:
                del self._told[next(iter(self._told))]
        return refused_admission(asked, why, self._issuer, at)

    async def _renew(self, node: str, message: RenewNode, reply: str) -> None:
        try:
            record = await renew_node(self._registry, node, message.key, self._wall())
            self._bus.publish_nowait(reply, NodeRenewal(expires_at=record.expires_at))
        except PilotlightError as error:
            self._refuse(reply, error.detail)
        except BusError as error:  # its agent asks again
            log.info("an identity was not renewed", node=node, error=str(error))
        except Exception:
            log.exception("an identity could not be renewed", node=node)
        finally:
            self._busy[node] -= 1
            if not self._busy[node]:
                del self._busy[node]

    def _refuse(self, reply: str, reason: str) -> None:
        try:
            self._bus.publish_nowait(reply, NodeRenewal(reason=reason))
        except BusError as error:
            log.debug("an answer was not sent", error=str(error))
