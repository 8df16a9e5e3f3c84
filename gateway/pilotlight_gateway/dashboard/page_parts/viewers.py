"""Who looks: the holder of a session's cookie, as a gateway says, each two seconds anew."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from pilotlight_core.model.api.seeing.session_api import SESSION_PATTERN, SessionInfo
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiProblem, GatewayApi

BELIEVED_S = 2.0
VIEWERS_AT_MOST = 4_096
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

    async def find(self, token: str) -> Viewer | None:
        """The viewer with this session; None: it has none, or it has ended.

        Raises:
            ApiProblem: no gateway says.
        """
        if not SESSION.fullmatch(token):
            return None
        at = self._clock()
        known = self._known.get(token)
        if known is not None and at < known[0]:
            return known[1]
        self._known.pop(token, None)
        answer = await self._client.ask("GET", "/v1/sessions/current", token)
        if answer.status == 401:
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
        if len(self._known) >= VIEWERS_AT_MOST:
            self._known.pop(next(iter(self._known)))
        self._known[token] = (at + BELIEVED_S, viewer)
        return viewer

    def forget(self, token: str) -> None:
        """Its session was ended."""
        self._known.pop(token, None)
