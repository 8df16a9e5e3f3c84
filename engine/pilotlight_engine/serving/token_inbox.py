"""What an engine has for one call: tokens in order, then one end. Used in the event loop only."""

from __future__ import annotations

import asyncio
from collections import deque

from pilotlight_engine.engine_port import Failed, Finished, GenRequest, TokenOut

MOST_UNREAD = 256
"""Tokens of a call that wait for its reader: with so many its sequence leaves the engine, and frees its room there."""
FEW_UNREAD = 32
"""With so few it comes back."""


class TokenInbox:
    """Tokens and the end of one call."""

    def __init__(self) -> None:
        self.tokens: deque[TokenOut] = deque()
        self.end: Finished | Failed | None = None
        self.refusal: Exception | None = None
        """Why the engine took it no more."""
        self.cached: int | None = None
        """Tokens of its prompt that were stored when it first came to the engine."""
        self.engine_id = ""
        """Of its sequence, while it is in the engine."""
        self.paused: GenRequest | None = None
        """By which it comes back; None: it is in the engine, or was asked to leave a moment ago."""
        self.is_leaving = False
        self.is_stopped = False
        """Its answer has ended by its text."""
        self._news = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """Whether no more tokens come."""
        return self.end is not None or self.refusal is not None

    def add(self, event: TokenOut | Finished | Failed) -> None:
        if isinstance(event, TokenOut):
            self.tokens.append(event)
        else:
            self.end = event
        self._news.set()

    def refuse(self, error: Exception) -> None:
        self.refusal = error
        self._news.set()

    async def wait_end(self) -> None:
        """Wait until the engine has let go of it. Tokens that come meanwhile are not wanted."""
        while not self.is_over:
            self._news.clear()
            await self._news.wait()

    async def wait_news(self) -> None:
        """Wait until there are tokens, or the end."""
        while not self.tokens and not self.is_over:
            self._news.clear()
            await self._news.wait()

    def take(self, most: int) -> list[TokenOut]:
        """The tokens that are there, at most so many."""
        return [self.tokens.popleft() for _ in range(min(most, len(self.tokens)))]
