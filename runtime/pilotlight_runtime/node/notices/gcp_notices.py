"""Notices of Compute Engine: `instance/preempted`, which is FALSE until the machine is, and waits for that.

The metadata service answers a question with `wait_for_change` when the value is another than `last_etag` names, or
when its time is up. A spot machine is switched off thirty seconds later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from urllib.parse import urlencode

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.metadata_client import MetadataClient, unexpected
from pilotlight_runtime.node.notices.notice_port import NoticesUnread

GCP_URL = "http://metadata.google.internal"
PATH = "/computeMetadata/v1/instance/preempted"
NOTICE_S = 30.0
"""From the word to the power."""
WAIT_S = 60
"""Of one question for a change."""
SLACK_S = 10.0
FLAVOR = "Metadata-Flavor"
MOST_ETAG = 128
"""Characters."""


class GcpNotices:
    """A `NoticeSource` that waits for news at the provider."""

    pause_s = 1.0
    """An answer that comes at once must not be asked for at once."""
    revokes = False

    def __init__(self, url: str = GCP_URL, *, wait_s: int = WAIT_S, wall: Callable[[], float] = time.time) -> None:
        self._client = MetadataClient(url)
        self._wait_s = wait_s
        self._wall = wall
        self._etag = ""
        """Of the last answer; "": there was none, so the next one is not waited for."""

    async def poll(self) -> NodeNotice | None:
        asked = {"wait_for_change": "true", "timeout_sec": self._wait_s, "last_etag": self._etag} if self._etag else {}
        etag, self._etag = self._etag, ""
        path = f"{PATH}?{urlencode(asked)}" if asked else PATH
        answer = await self._client.ask(path, {FLAVOR: "Google"}, within_s=self._wait_s + SLACK_S)
        if answer.status != 200:
            raise unexpected(PATH, answer)
        if answer.headers.get(FLAVOR) != "Google":
            raise NoticesUnread(f"GET {PATH} was answered by something else than Compute Engine")
        word = answer.text.strip().upper()
        if word not in ("TRUE", "FALSE"):
            raise NoticesUnread(f"GET {PATH}: neither TRUE nor FALSE: {answer.text!r:.40}")
        told = answer.headers.get("ETag", etag)
        self._etag = told if told.isprintable() and len(told) <= MOST_ETAG else ""
        if word == "FALSE":
            return None
        return NodeNotice(
            kind=NoticeKind.PREEMPT, deadline=self._wall() + NOTICE_S, reason="Compute Engine preempts it"
        )

    async def aclose(self) -> None:
        await self._client.aclose()
