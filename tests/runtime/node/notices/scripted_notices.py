"""A provider that says what a test has it say."""

from __future__ import annotations

import asyncio
import time

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind


class ScriptedNotices:
    """A `NoticeSource`: `said` is its answer, or its error."""

    pause_s = 0.01

    def __init__(self, said: NodeNotice | Exception | None = None, *, revokes: bool = True) -> None:
        self.said = said
        self.revokes = revokes
        self.looks = 0
        self.looked = asyncio.Event()

    async def poll(self) -> NodeNotice | None:
        self.looks += 1
        self.looked.set()
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def aclose(self) -> None:
        pass


def in_seconds(seconds: float) -> NodeNotice:
    """The node is taken away so soon."""
    return NodeNotice(kind=NoticeKind.PREEMPT, deadline=time.time() + seconds, reason="a drill")
