"""What goes wrong in the supervisor itself costs no part."""

from __future__ import annotations

import gc
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pilotlight_supervisor import supervisor as module
from pilotlight_supervisor.supervisor import MAX_LOG, Supervisor
from tests.supervisor.test_embedded_bus import alive
from tests.supervisor.test_supervisor import part, supervised
from tests.waiting import until


async def test_a_part_that_cannot_be_started_again_is_tried_until_it_can(tmp_path: Path) -> None:
    """Such as while there is no file for its output."""
    async with supervised(tmp_path, part("x")) as supervisor:
        first, log = supervisor.pids["x"], supervisor.log_path("x")
        log.unlink()
        log.mkdir()
        with capture_logs() as lines:
            os.kill(first, signal.SIGKILL)
            await until(lambda: any(line["event"] == "a part cannot be started" for line in lines))
        log.rmdir()

        await until(lambda: supervisor.pids.get("x", first) != first)


async def test_parts_are_kept_running_though_nobody_can_be_told(tmp_path: Path) -> None:
    """The ready file may be on a full disk."""
    full = False

    def tell() -> None:
        if full:
            raise OSError("no space left on device")

    supervisor = Supervisor((part("x"),), tmp_path / "logs", tell)
    await supervisor.start()
    try:
        first, full = supervisor.pids["x"], True
        os.kill(first, signal.SIGKILL)

        await until(lambda: supervisor.pids.get("x", first) != first)
    finally:
        await supervisor.stop()


async def test_a_part_whose_keeping_crashes_keeps_no_other_from_its_end(tmp_path: Path) -> None:
    """The crash is logged at once, and the process is killed too."""
    broken = replace(part("broken", rank=1), stop_within_s="soon")  # type: ignore[arg-type]
    supervisor = Supervisor((part("x"), broken), tmp_path / "logs")
    await supervisor.start()
    pids = supervisor.pids
    with capture_logs() as lines:
        await supervisor.stop()

    assert [type(line["exc_info"]) for line in lines if "exc_info" in line] == [TypeError]
    assert not any(alive(pid) for pid in pids.values())
    gc.collect()  # a process that was never waited for is warned of


async def test_logs_are_trimmed_again_once_they_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lasting failure is logged once."""
    monkeypatch.setattr(module, "TRIM_EVERY_S", 0.001)
    async with supervised(tmp_path, part("x")) as supervisor:
        log = supervisor.log_path("x")
        aside = log.with_name("x.log.1")
        aside.mkdir()
        with capture_logs() as lines:
            os.truncate(log, MAX_LOG + 1)
            await until(lambda: lines)
            aside.rmdir()
            await until(lambda: log.stat().st_size == 0)

    assert len(lines) == 1
