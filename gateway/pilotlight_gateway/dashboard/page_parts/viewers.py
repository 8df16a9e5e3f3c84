"""Who looks: the holder of a session's cookie, as a gateway says, each two seconds anew."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakValueDictionary

import msgspec

from pilotlight_core.model.api.seeing.session_api import SESSION_PATTERN, SessionInfo
from pilotlight_gateway.dashboard.page_parts.gateway_client import UNKNOWN_SESSION, ApiAnswer, ApiProblem, GatewayApi

BELIEVED_S = 2.0
LOOKS_S = 10.0
"""Whoever was seen within it counts among those who look."""
VIEWERS_AT_MOST = 4_096
STRANGERS_AT_A_TIME = 8
"""Sessions that nobody has shown lately, and which may be guesses, that gateways are asked for at a time."""
STRANGERS_WAIT = 256
CSRF_DIGITS = 32
OPERATOR = "operator"
SESSION = re.compile(SESSION_PATTERN)


@dataclass(frozen=True, kw_only=True)
class Viewer:
    """Whoever has a good session."""

    token: str
    tenant: str
    key: str
    scopes: frozenset[str]
    expires_at: float

    @property
    def operator(self) -> bool:
        """Whether the whole platform is theirs to see."""
        return OPERATOR in self.scopes

    @property
    def audience(self) -> tuple[str, frozenset[str]]:
        """Who is told the same by the API."""
        return self.tenant, self.scopes

    @property
    def csrf(self) -> str:
        """What forms of this session's pages have in them, which no page of anybody else can know."""
        return hmac.new(self.token.encode(), b"pilotlight dashboard form", hashlib.sha256).hexdigest()[:CSRF_DIGITS]

    def may(self, *scopes: str) -> bool:
        """As the API has it: one of them, or `admin` for all but the operator's."""
        return not self.scopes.isdisjoint(scopes) or ("admin" in self.scopes and scopes != (OPERATOR,))


class Viewers:
    """Finds them. `clock` is monotonic seconds."""

    def __init__(self, client: GatewayApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[str, tuple[float, Viewer]] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By session, while it is asked for."""
        self._strangers = asyncio.Semaphore(STRANGERS_AT_A_TIME)
        self._waiting = 0

    def __len__(self) -> int:
        """Whoever has looked within the last seconds."""
        at = self._clock()
        return sum([at < until + LOOKS_S for until, _ in self._known.values()])

    async def find(self, token: str) -> Viewer | None:
        """The viewer with this session; None: it has none, or it has ended.

        Raises:
            ApiProblem: no gateway says.
        """
        if not SESSION.fullmatch(token):
            return None
        known = self._known.get(token)
        if known is None:
            return await self._asked(token, self._ask_of_stranger)
        if self._clock() < known[0]:
            return known[1]
        # A browser's streams have their turns at once, since they wait for the same drawings: one of them asks.
        asking = self._asking.get(token)
        if asking is None:
            asking = self._asking[token] = asyncio.Lock()
        async with asking:
            known = self._known.get(token)
            if known is not None and self._clock() < known[0]:
                return known[1]
            return await self._asked(token, self._ask)

    async def _asked(self, token: str, ask: Callable[[str], Awaitable[ApiAnswer]]) -> Viewer | None:
        """What a gateway says of a session, which is believed from when it was asked."""
        at, answer = self._clock(), await ask(token)
        if answer.status == UNKNOWN_SESSION:
            self._known.pop(token, None)
            return None
        if answer.status >= 400:
            raise answer.problem()
        try:
            info = msgspec.json.decode(answer.body, type=SessionInfo)
        except msgspec.DecodeError:
            raise ApiProblem(
                0, "internal", "A gateway of another release answered: its sessions are not known."
            ) from None
        viewer = Viewer(
            token=token, tenant=info.tenant, key=info.key, scopes=frozenset(info.scopes), expires_at=info.expires_at
        )
        self._known.pop(token, None)  # whoever looked last is forgotten last
        if len(self._known) >= VIEWERS_AT_MOST:
            self._known.pop(next(iter(self._known)))
        self._known[token] = (at + BELIEVED_S, viewer)
        return viewer

    async def _ask(self, token: str) -> ApiAnswer:
        return await self._client.ask("GET", "/v1/sessions/current", token)

    async def _ask_of_stranger(self, token: str) -> ApiAnswer:
        if self._waiting >= STRANGERS_WAIT:
            raise ApiProblem(429, "rate_limited", "Too many log in, or come back, at once: load the page again.")
        self._waiting += 1
        try:
            async with self._strangers:
                return await self._ask(token)
        finally:
            self._waiting -= 1

    def forget(self, token: str) -> None:
        """Its session was ended."""
        self._known.pop(token, None)
