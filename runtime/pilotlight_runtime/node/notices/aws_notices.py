"""Notices of EC2, by the metadata service in its second version: a token first, then three questions.

    spot/instance-action                     404, or {"action": "terminate", "time": "2026-11-26T08:22:00Z"}
    autoscaling/target-lifecycle-state       404, or a word: "Terminated" where its group takes it down
    events/recommendations/rebalance         404, or {"noticeTime": "2026-11-26T08:20:00Z"}

The first two end the node, the last one says that it is likelier to end than others are. A group's word has no
deadline: two minutes are what its hook is given at most where the machine is reclaimed meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.metadata_client import MetadataAnswer, MetadataClient, unexpected
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from pilotlight_runtime.node.notices.provider_times import unix_of_iso

AWS_URL = "http://169.254.169.254"
TOKEN_PATH = "/latest/api/token"  # noqa: S105 - an address
TOKEN_S = 21_600
"""How long a token is asked for: the longest there is."""
RENEW_S = 300.0
"""So long before its end a token is not used any more."""
MOST_TOKEN = 1_024
"""Characters."""
ACTION = "/latest/meta-data/spot/instance-action"
LIFECYCLE = "/latest/meta-data/autoscaling/target-lifecycle-state"
REBALANCE = "/latest/meta-data/events/recommendations/rebalance"
GROUP_S = 120.0
"""From the first word of a group that takes the node down."""
ACTION_S = 120.0
"""No action is announced earlier: a time further ahead is that of a clock which is behind, here."""
ABSENT = 404
REFUSED = 401


class AwsNotices:
    """A `NoticeSource`. `wall` gives unix seconds, `clock` monotonic ones."""

    pause_s = 5.0
    revokes = False

    def __init__(
        self,
        url: str = AWS_URL,
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = MetadataClient(url)
        self._wall = wall
        self._clock = clock
        self._token = ""
        self._token_until_at = 0.0

    async def poll(self) -> NodeNotice | None:
        if (action := await self._text(ACTION)) is not None:
            return self._of_action(action)
        if (state := await self._text(LIFECYCLE)) is not None and state.strip().startswith("Terminat"):
            reason = "its autoscaling group takes it down"
            return NodeNotice(kind=NoticeKind.PREEMPT, deadline=self._wall() + GROUP_S, reason=reason)
        if (told := await self._text(REBALANCE)) is not None:
            _object(REBALANCE, told)
            return NodeNotice(kind=NoticeKind.REBALANCE, reason="EC2 recommends to rebalance it")
        return None

    async def aclose(self) -> None:
        await self._client.aclose()

    def _of_action(self, text: str) -> NodeNotice:
        told, at = _object(ACTION, text), self._wall()
        action = str(told.get("action", ""))
        if action not in ("terminate", "stop", "hibernate"):
            raise NoticesUnread(f"{ACTION}: an action that is not known: {action!r:.40}")
        # Hibernation begins at once, whatever the time says.
        deadline = at if action == "hibernate" else min(unix_of_iso(told.get("time"), at), at + ACTION_S)
        return NodeNotice(kind=NoticeKind.PREEMPT, deadline=deadline, reason=f"EC2 reclaims it: {action}")

    async def _text(self, path: str) -> str | None:
        """What is there; None: nothing. Raises NoticesUnread."""
        answer = await self._asked(path)
        if answer.status == REFUSED:  # the token's time was up, or the machine came back from a pause
            self._token = ""
            answer = await self._asked(path)
        if answer.status == ABSENT:
            return None
        if answer.status != 200:
            raise unexpected(path, answer)
        return answer.text

    async def _asked(self, path: str) -> MetadataAnswer:
        if not self._token or self._clock() >= self._token_until_at:
            await self._renew()
        return await self._client.ask(path, {"X-aws-ec2-metadata-token": self._token})

    async def _renew(self) -> None:
        began_at = self._clock()
        headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_S)}
        answer = await self._client.ask(TOKEN_PATH, headers, method="PUT")
        token = answer.text.strip()
        if answer.status != 200 or not token.isprintable() or not token.isascii() or not 0 < len(token) <= MOST_TOKEN:
            raise NoticesUnread(f"PUT {TOKEN_PATH} gave no token: status {answer.status}")
        self._token, self._token_until_at = token, began_at + TOKEN_S - RENEW_S


def _object(path: str, text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise NoticesUnread(f"{path}: no JSON object: {text!r:.60}") from None
