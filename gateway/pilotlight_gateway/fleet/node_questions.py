"""Hears what agents ask gateways about their containers, and answers into the inbox of the node that asked."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import structlog

from pilotlight_core.bus import Bus, BusError, bus_users
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.message import Message

AT_ONCE = 32
"""Questions of one node; more are told to come later."""
Question = TypeVar("Question", bound=Message)

log = structlog.get_logger(__name__)


class NodeQuestions(Generic[Question]):
    """Answers questions of one kind while `running` is open; of the gateways in a `queue` one answers each.

    `answer` is given the node that the question's subject names, which its agent cannot choose. `busy` is what a node
    is told that has asked too much at once.
    """

    def __init__(
        self,
        bus: Bus,
        subject: str,
        kind: type[Question],
        answer: Callable[[str, Question], Awaitable[Message]],
        *,
        queue: str,
        busy: Message,
    ) -> None:
        self._bus = bus
        self._subject = subject
        self._kind = kind
        self._answer_of = answer
        self._queue = queue
        self._told_to_wait = busy
        self._busy: Counter[str] = Counter()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer until the block ends."""
        async with asyncio.TaskGroup() as group:

            def receive(subject: str, message: Any, reply: str) -> None:
                node = subjects.node_of(subject)
                # A gateway may publish where a node may not: it answers into that node's inbox alone.
                if not isinstance(message, self._kind) or not reply.startswith(f"{bus_users.agent_inbox(node)}."):
                    return
                if self._busy[node] >= AT_ONCE:
                    self._send(reply, self._told_to_wait)
                    return
                self._busy[node] += 1
                answers.add(task := group.create_task(self._answer(node, message, reply)))
                task.add_done_callback(answers.discard)

            answers: set[asyncio.Task[None]] = set()
            heard = await self._bus.subscribe(self._subject, receive, queue=self._queue)
            try:
                yield
            finally:
                await heard.unsubscribe()
                for task in answers:
                    task.cancel()

    async def _answer(self, node: str, question: Question, reply: str) -> None:
        try:
            self._send(reply, await self._answer_of(node, question))
        except (BusError, ValueError) as error:  # ValueError: its key is none
            kind = type(error).__name__
            log.warning("a node's question could not be answered", asked=self._queue, node=node, error=kind)
        except Exception as error:  # noqa: BLE001 - not with its text or its variables, which may hold a key or a value
            kind, where = type(error).__name__, traceback.extract_tb(error.__traceback__)[-1]
            at = f"{where.filename}:{where.lineno}"
            log.error("a node's question could not be answered", asked=self._queue, node=node, error=kind, where=at)
        finally:
            self._busy[node] -= 1
            if not self._busy[node]:
                del self._busy[node]

    def _send(self, reply: str, answer: Message) -> None:
        try:
            self._bus.publish_nowait(reply, answer)
        except BusError as error:
            log.debug("an answer was not sent", error=str(error))
