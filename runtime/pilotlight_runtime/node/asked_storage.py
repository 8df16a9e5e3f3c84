"""What an agent stores and reads of streams, by way of a gateway.

A server of the bus answers with its own rights wherever who asks has said: a node that was taken over could have it
write into any bucket. So agents may ask no stream, and have a gateway do so, which knows whose question it is. One of
before does not answer; the bus then has users by which agents may ask it themselves (`bus_users`).
"""

from __future__ import annotations

from functools import partial

from pilotlight_core.bus.bus_errors import BusTimeout, NoResponders, StoreRefused
from pilotlight_core.bus.inbox import Inbox
from pilotlight_core.bus.jetstream import READ_TIMEOUT, JetStream, StreamMessage
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import StorageAnswer, StorageWanted
from pilotlight_core.model.messages.wire import decode, encode

AGAIN = ("busy", "down")
FIRST_S = 2.0
"""For the first answer: gateways may be about to listen."""


class AskedStorage(JetStream):
    """The part of a `JetStream` that agents use. `subject` is where gateways hear this node."""

    def __init__(self, inbox: Inbox, subject: str) -> None:
        super().__init__(inbox)
        self._asking = inbox
        self._subject = subject
        self._is_answered = False
        """Whether gateways of today were there."""
        self._is_before = False
        """Whether nobody listened last."""

    async def store(
        self,
        subject: str,
        payload: bytes,
        *,
        message_id: str = "",
        timeout: float = 10.0,
        headers: dict[str, str] | None = None,
    ) -> int:
        """See `JetStream.store`; with `headers` refused: a gateway stores on no condition, and deletes nothing."""
        if headers:
            raise StoreRefused(f"{subject}: an agent stores without {', '.join(headers)}")
        wanted = StorageWanted(subject=subject, data=payload, id=message_id or token())
        answer = await self._answered(wanted, timeout)
        if answer is None:
            return await super().store(subject, payload, message_id=wanted.id, timeout=timeout)
        if answer.reason:
            raise StoreRefused(f"{subject}: {answer.reason}")
        return answer.seq

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """See `JetStream.last`."""
        answer = await self._answered(StorageWanted(subject=subject), READ_TIMEOUT)
        if answer is None:
            return await super().last(stream, subject)
        if answer.reason:
            raise StoreRefused(f"{subject}: {answer.reason}")
        if not answer.seq:
            return None
        return StreamMessage(seq=answer.seq, subject=subject, data=answer.data, headers={}, at=answer.at)

    async def _answered(self, wanted: StorageWanted, timeout: float) -> StorageAnswer | None:
        """What a gateway says; None: there is none, or none of today."""
        within_s = min(timeout, FIRST_S)
        try:
            if self._is_before:
                return await self._asked(wanted, within_s)
            return await self.persist(partial(self._asked, wanted), timeout if self._is_answered else within_s)
        except NoResponders:  # also of gateways that were replaced by some of before
            self._is_before = True
            return None
        except BusTimeout:  # where a server does not let it ask, it hears nothing
            if self._is_answered:
                raise
            self._is_before = True
            return None

    async def _asked(self, wanted: StorageWanted, timeout_s: float) -> StorageAnswer:
        reply = await self._asking.ask(self._subject, encode(wanted), timeout=timeout_s)
        answer = decode(reply.data)
        self._is_answered = isinstance(answer, StorageAnswer)
        self._is_before = not self._is_answered
        if not isinstance(answer, StorageAnswer) or answer.reason in AGAIN:
            raise BusTimeout("A gateway could not have it stored or read now.")
        return answer
