"""Asks a provider of notices as long as its agent runs, and tells what holds whenever that changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog

from pilotlight_core.model.messages.node_messages import NodeNotice
from pilotlight_runtime.node.notices.kept_notices import NoticeKeeper
from pilotlight_runtime.node.notices.notice_port import NoticeSource, NoticesUnread
from pilotlight_runtime.node.notices.notice_rules import is_over, standing_notice

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0
"""Between two looks at a provider that cannot be read: it doubles from the first."""

log = structlog.get_logger(__name__)


class NoticeWatch:
    """`changed` is called in the event loop. `wall` gives unix seconds."""

    def __init__(
        self,
        source: NoticeSource | None,
        keeper: NoticeKeeper,
        changed: Callable[[], None],
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._keeper = keeper
        self._changed = changed
        self._wall = wall
        self._failures = 0
        """Questions in a row that came to nothing."""
        self._saving = asyncio.Lock()
        kept = keeper.read() if source is not None else None
        is_valid = kept is not None and not is_over(kept.notice, wall())
        self.notice: NodeNotice | None = kept.notice if kept is not None and is_valid else None
        """The one that holds."""
        self.drained = is_valid and kept is not None and kept.drained
        """Whether the node was emptied for it."""

    async def run(self) -> None:
        """Ask until cancelled."""
        if self._source is None:
            return
        try:
            while True:
                pause_s = await self._poll(self._source)
                await asyncio.sleep(pause_s)
        finally:
            await self._source.aclose()

    async def mark_drained(self) -> None:
        """The node is empty, and its agent ends: the next one need not do it again."""
        self.drained = True
        await self._save()

    async def _poll(self, source: NoticeSource) -> float:
        """Ask once; returns how long to wait until the next time."""
        told, why = None, ""
        try:
            told = await source.poll()
        except NoticesUnread as error:
            why = str(error)
        except Exception as error:
            why = repr(error)
            log.exception("what a provider answers went wrong")
        at = self._wall()
        if why:
            if not self._failures:
                log.warning("notices of the node's end cannot be read; what was said before holds", error=why)
            self._failures += 1
            await self._hold(standing_notice(self.notice, None, revokes=False, at=at))
            return min(FIRST_PAUSE_S * 2.0 ** min(self._failures - 1, 10), LONGEST_PAUSE_S)
        if self._failures:
            self._failures = 0
            log.info("notices of the node's end can be read again")
        await self._hold(standing_notice(self.notice, told, revokes=source.revokes, at=at))
        return source.pause_s

    async def _hold(self, notice: NodeNotice | None) -> None:
        if notice == self.notice:
            return
        self.notice, self.drained = notice, False
        if notice is None:
            log.info("the notice of the node's end does not hold any more")
        else:
            log.warning("notice", kind=notice.kind, deadline=notice.deadline, reason=notice.reason)
        self._changed()  # before it is on disk: a drain has no time to lose
        await self._save()

    async def _save(self) -> None:
        """Keep what holds now: of two writes the later one is the last."""
        async with self._saving:
            await asyncio.to_thread(self._keeper.write, self.notice, drained=self.drained)
