"""What a gateway asks nodes about packages: what requirements are locked to, and what an environment has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import structlog

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import (
    DescribePackages,
    LockPackages,
    PackagesDescribed,
    PackagesLocked,
)
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.records.nodes import NodeRecord

_Answer = TypeVar("_Answer", PackagesDescribed, PackagesLocked)
MakeQuestion = Callable[[str, str], LockPackages | DescribePackages]
"""From the question's id and the gateway's name."""

log = structlog.get_logger(__name__)


class NodesSeen(Protocol):
    """The nodes that are there."""

    def reports(self, at: float, /) -> Sequence[NodeReport]: ...


class NodesKnown(Protocol):
    """What is on record of nodes."""

    def node_nowait(self, node: str, /) -> NodeRecord | None: ...


class PackageQuestions:
    """The questions of the gateway of a name, answered while `running` is open."""

    def __init__(self, bus: Bus, *, region: str, gateway: str) -> None:
        self._bus = bus
        self._region = region
        self._gateway = gateway
        self._pending: dict[tuple[str, str], asyncio.Future[Any]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take answers until the block ends."""
        await self._bus.subscribe(subjects.packages_locked(self._region, self._gateway), self.on_answer)
        yield

    def on_answer(self, subject: str, message: Any, _reply: str) -> None:
        """A node has answered; it speaks for itself alone."""
        if isinstance(message, PackagesDescribed | PackagesLocked):
            waiting = self._pending.get((subjects.node_of(subject), message.question))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)

    async def ask(self, node: str, kind: type[_Answer], make: MakeQuestion, *, within_s: float) -> _Answer | None:
        """A node's answer of a kind; None: there is none in time."""
        key = node, token(16)
        waiting: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[key] = waiting
        try:
            self._bus.publish_nowait(subjects.lock_packages(self._region, node), make(key[1], self._gateway))
            async with asyncio.timeout(within_s):
                answer = await waiting
        except (TimeoutError, BusError) as error:
            log.warning("a node does not answer about packages", node=node, error=str(error) or "too late")
            return None
        finally:
            del self._pending[key]
        return answer if isinstance(answer, kind) else None


def is_joined(records: NodesKnown, node: str) -> bool:
    """Whether a node joined by a token, so that it may be another's than the operator's."""
    record = records.node_nowait(node)
    return record is not None and record.joined
