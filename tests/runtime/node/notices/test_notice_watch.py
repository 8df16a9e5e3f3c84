"""Asking a provider, and what holds of its answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.kept_notices import NoticeKeeper
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from pilotlight_runtime.node.notices.notice_watch import NoticeWatch
from tests.runtime.node.notices.scripted_notices import ScriptedNotices
from tests.waiting import until

NOTICE = NodeNotice(kind=NoticeKind.PREEMPT, deadline=1_000.0, reason="a drill")


def _has_looked(source: ScriptedNotices, before: int) -> bool:
    return source.looks > before


@asynccontextmanager
async def running(watch: NoticeWatch) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(watch.run())
        yield
        task.cancel()


async def test_a_notice_is_told_once_and_kept(tmp_path: Path) -> None:
    """However often the provider repeats it; one that is withdrawn is told too."""
    told: list[NodeNotice | None] = []
    source, keeper = ScriptedNotices(), NoticeKeeper(tmp_path / "n", "b")
    watch = NoticeWatch(source, keeper, lambda: told.append(watch.notice), wall=lambda: 900.0)
    async with running(watch):
        source.said = NOTICE
        await until(lambda: told)
        looks = source.looks
        await until(lambda: source.looks > looks + 2)
        kept = keeper.read()
        source.said = None
        await until(lambda: len(told) > 1)
        await until(lambda: keeper.read() is None)

    assert told == [NOTICE, None]
    assert kept is not None
    assert (kept.notice, kept.drained) == (NOTICE, False)


async def test_a_provider_that_cannot_be_read_changes_nothing(tmp_path: Path) -> None:
    """Nor does a mistake of ours in reading it: the agent goes on."""
    source = ScriptedNotices(NOTICE)
    watch = NoticeWatch(source, NoticeKeeper(tmp_path / "n", "b"), lambda: None, wall=lambda: 900.0)
    async with running(watch):
        await until(lambda: watch.notice == NOTICE)
        for error in (NoticesUnread("nobody there"), RuntimeError("a mistake")):
            source.said = error
            await until(partial(_has_looked, source, source.looks))
            assert watch.notice == NOTICE


async def test_what_was_kept_holds_from_the_start(tmp_path: Path) -> None:
    """Unless its time is over, or nobody is asked any more."""
    keeper = NoticeKeeper(tmp_path / "n", "b")
    keeper.write(NOTICE, drained=True)

    again = NoticeWatch(ScriptedNotices(), keeper, lambda: None, wall=lambda: 990.0)
    late = NoticeWatch(ScriptedNotices(), keeper, lambda: None, wall=lambda: 2_000.0)
    none = NoticeWatch(None, keeper, lambda: None, wall=lambda: 990.0)

    assert (again.notice, again.drained) == (NOTICE, True)
    assert (late.notice, late.drained) == (None, False)
    assert (none.notice, none.drained) == (None, False)
    await none.run()


async def test_what_was_written_last_is_what_is_kept(tmp_path: Path) -> None:
    """A node may be empty before its notice is on disk."""
    source, keeper = ScriptedNotices(NOTICE), NoticeKeeper(tmp_path / "n", "b")
    came = asyncio.Event()
    watch = NoticeWatch(source, keeper, came.set, wall=lambda: 900.0)
    async with running(watch):
        await came.wait()
        await watch.mark_drained()
        looks = source.looks
        await until(lambda: source.looks > looks)
    kept = keeper.read()
    assert kept is not None
    assert kept.drained
