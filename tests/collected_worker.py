"""What xdist has a worker run: its own `xdist.remote`, but that the tests are there already.

The worker is a fork of a process that has configured pytest and collected (`worker_forks`). So all that remains is what
xdist adds to it: whom it tells, and which tests it is to run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from _pytest._code import ExceptionInfo
from _pytest.config import Config
from xdist import remote

collected: tuple[Config, pytest.Session, list[pytest.CollectReport]] | None = None
"""Set before the fork; the reports are of what could not be collected."""


class BriefTeller(remote.WorkerInteractor):  # type: ignore[misc] # xdist has no types
    """Tells of a test that has passed once, and not also that it begins, was set up and is torn down."""

    def pytest_runtest_logstart(self) -> None:
        """Nobody reads along."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        is_timed = self.config.option.durations is not None
        if report.when == "call" or not report.passed or is_timed:
            super().pytest_runtest_logreport(report)


def work(channel: Any) -> None:
    """Run what comes over the channel, as `xdist.remote` does."""
    given, _, options, _ = channel.receive()
    os.environ["PYTEST_XDIST_TESTRUNUID"] = given["testrunuid"]
    os.environ["PYTEST_XDIST_WORKER"] = given["workerid"]
    os.environ["PYTEST_XDIST_WORKER_COUNT"] = str(given["workercount"])
    assert collected is not None
    config, session, failed = collected
    remote.setup_config(config, options["basetemp"])
    config._tmp_path_factory._given_basetemp = Path(options["basetemp"])  # type: ignore[attr-defined]
    config.workerinput, config.workeroutput = given, {}  # type: ignore[attr-defined]
    capturing = config.pluginmanager.getplugin("capturemanager")
    capturing.start_global_capturing()
    capturing.suspend_global_capture()
    teller = remote.interactor = BriefTeller(config, channel)
    teller.pytest_sessionstart(session)
    teller.pytest_collection()
    for report in failed:
        teller.pytest_collectreport(report)
    teller.pytest_collection_finish(session)
    run(config, session)


def run(config: Config, session: pytest.Session) -> None:
    """As pytest runs a session, from there on where its tests are collected."""
    session.exitstatus = pytest.ExitCode.OK
    try:
        config.hook.pytest_runtestloop(session=session)
        if session.testsfailed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
    except pytest.Session.Failed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    except (KeyboardInterrupt, pytest.exit.Exception):
        session.exitstatus = pytest.ExitCode.INTERRUPTED
        config.hook.pytest_keyboard_interrupt(excinfo=ExceptionInfo.from_current())
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
        config.notify_exception(ExceptionInfo.from_current(), config.option)
    finally:
        config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
        config._ensure_unconfigure()


if __name__ == "__channelexec__":
    from tests import collected_worker

    collected_worker.work(channel)  # type: ignore[name-defined] # noqa: F821 - execnet's
