"""Empties the node when its provider takes it away, and has its agent end before the deadline.

    1  at once      nothing new comes: binds are refused, containers drain, the report says so and why, and others
                    start elsewhere; calls that have not begun go back
    2  until then   what fits runs to its end, the rest ends early (`containers.preempt`)
    3  then         the agent ends as it always does, each step within its part of what is left

A recommendation to rebalance changes nothing here but the report: the controller replaces the node's containers first.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import structlog

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.containers.containers import Containers
from pilotlight_runtime.node.notices.kept_notices import NoticeKeeper
from pilotlight_runtime.node.notices.notice_port import NoticeSource
from pilotlight_runtime.node.notices.notice_rules import for_calls_s, step_bound_s
from pilotlight_runtime.node.notices.notice_watch import NoticeWatch

EXITS_S = 2.0
"""For exit hooks, once no call runs any more."""
EXIT_STEPS = 4
"""Of the margin, they may take a quarter."""

log = structlog.get_logger(__name__)


class NoticeDrain:
    """What one agent does by its provider's notices. `changed` is called when a report is due."""

    def __init__(
        self,
        source: NoticeSource | None,
        keeper: NoticeKeeper,
        containers: Containers,
        changed: Callable[[], None],
        *,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._containers = containers
        self._report_due = changed
        self._wall = wall
        self._news = asyncio.Event()
        self._time: asyncio.Timeout | None = None
        """Of the drain under way."""
        self.watch = NoticeWatch(source, keeper, self._on_change, wall=wall)
        if self._preemption is not None:
            containers.draining = True  # from the first report on
            self._news.set()

    @property
    def notice(self) -> NodeNotice | None:
        """The one that holds."""
        return self.watch.notice

    @property
    def _preemption(self) -> NodeNotice | None:
        notice = self.watch.notice
        return notice if notice is not None and notice.kind is NoticeKind.PREEMPT else None

    def bound_s(self, most_s: float, steps_left: int) -> float:
        """The bound of the next of so many steps of the agent's end."""
        return step_bound_s(self.notice, most_s, steps_left, self._wall())

    async def run(self, stop: asyncio.Event) -> None:
        """Do what notices ask for until cancelled; sets `stop` when the agent is to end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watch.run())
            while True:
                await self._news.wait()
                self._news.clear()
                if (notice := self._preemption) is None:
                    self._containers.resume()
                elif not self.watch.drained and await self._drain(notice):
                    await self.watch.mark_drained()
                    stop.set()

    async def _drain(self, notice: NodeNotice) -> bool:
        """Empty the node; False if another notice has come, or this one was withdrawn."""
        within_s = for_calls_s(notice, self._wall())
        log.warning(
            "the node is taken away: it drains", deadline=notice.deadline, reason=notice.reason, calls_s=within_s
        )
        self._containers.preempt(within_s, f"its node is taken away ({notice.reason})")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s + self.bound_s(EXITS_S, EXIT_STEPS)) as self._time:
                await self._containers.wait_empty()
        return not self._news.is_set()

    def _on_change(self) -> None:
        if self._preemption is not None:
            self._containers.draining = True
        self._news.set()
        if self._time is not None and not self._time.expired():
            self._time.reschedule(asyncio.get_running_loop().time())  # a drain under way begins anew, or is over
        self._report_due()
