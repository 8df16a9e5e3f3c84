"""How gateways tell each other what they counted: each is asked over the bus, within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import structlog

from pilotlight_core.bus import BusError, Handler, Subscription
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_gateway.tally.tally_answers import TallyAnswers

ANSWER_S = 0.5
"""A gateway that has not answered by then counts as silent."""
MOST_AT_ONCE = 16
"""Questions of other gateways that are answered at a time."""

log = structlog.get_logger(__name__)


class TallyBus(Protocol):
    """What it needs of the bus."""

    async def request(self, subject: str, message: Message, timeout: float) -> Any: ...
    async def publish(self, subject: str, message: Message) -> None: ...
    async def subscribe(self, subject: str, handler: Handler) -> Subscription: ...
    def spawn(self, job: Any) -> asyncio.Task[None]: ...


class TallyPeers(Protocol):
    """The other gateways."""

    async def ask(self, asked: AskTallies) -> tuple[list[TalliesTold], list[str]]:
        """What they tell, and who did not answer."""
        ...


class NoPeers:
    """A gateway that is alone."""

    async def ask(self, asked: AskTallies) -> tuple[list[TalliesTold], list[str]]:  # noqa: ARG002
        return [], []


class BusPeers:
    """Asks the other gateways over the bus, and answers them."""

    def __init__(
        self, bus: TallyBus, answers: TallyAnswers, others: Callable[[], list[str]], *, region: str, gateway: str
    ) -> None:
        self._bus = bus
        self._answers = answers
        self._others = others
        self._region = region
        self._gateway = gateway
        self._busy = 0
        self._heard: Subscription | None = None

    async def __aenter__(self) -> BusPeers:
        self._heard = await self._bus.subscribe(subjects.tallies(self._region, self._gateway), self.receive)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._heard is not None:
            await self._heard.unsubscribe()

    async def ask(self, asked: AskTallies) -> tuple[list[TalliesTold], list[str]]:
        others = self._others()
        answers = await asyncio.gather(*[self._ask_one(each, asked) for each in others])
        told = [answer for answer in answers if answer is not None]
        return told, [each for each, answer in zip(others, answers, strict=True) if answer is None]

    async def _ask_one(self, gateway: str, asked: AskTallies) -> TalliesTold | None:
        answer = None
        try:
            answer = await self._bus.request(subjects.tallies(self._region, gateway), asked, timeout=ANSWER_S)
        except (BusError, msgspec.DecodeError) as error:
            log.info("a gateway tells nothing of its calls", gateway=gateway, error=str(error))
        return answer if isinstance(answer, TalliesTold) else None

    def receive(self, _subject: str, message: Any, reply: str) -> None:
        """Another gateway asks; one too many gets no answer."""
        if isinstance(message, AskTallies) and self._busy < MOST_AT_ONCE:
            self._busy += 1
            self._bus.spawn(self._answer(message, reply))

    async def _answer(self, asked: AskTallies, reply: str) -> None:
        try:
            await self._bus.publish(reply, await self._answers.answer(asked))
        except BusError:
            pass  # it goes on without
        except Exception:
            log.exception("what another gateway asked of tallies went wrong; others go on")
        finally:
            self._busy -= 1
