"""Background tasks end with their parent, and a crash is reported."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus.background_tasks import BackgroundTasks
from tests.waiting import until


async def test_jobs_end_together() -> None:
    """All are cancelled, and their clean-up has run when `end_all` returns."""
    ended: list[int] = []

    async def job(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(number)

    jobs = BackgroundTasks(lambda: None)
    for number in range(3):
        jobs.spawn(job(number))
    await asyncio.sleep(0)
    await jobs.end_all()

    assert sorted(ended) == [0, 1, 2]
    assert len(jobs) == 0


async def test_a_crash_is_told_once() -> None:
    """A job that raises calls `on_crash`; one that returns does not."""
    crashes: list[int] = []

    async def fine() -> None:
        return

    async def broken() -> None:
        raise RuntimeError("on purpose")

    jobs = BackgroundTasks(lambda: crashes.append(1))
    jobs.spawn(fine())
    jobs.spawn(broken())
    await until(lambda: not len(jobs))

    assert crashes == [1]
