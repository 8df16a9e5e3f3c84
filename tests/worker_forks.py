"""`python -P tests/worker_forks.py SOCKET ARGS`: pytest with all tests collected, of which a fork is each worker.

Importing and collecting them takes longer than most folders' tests do, and each worker would do both. A fork has them
(`collected_worker`), and has what Python gives a process that starts: each connection brings the standard files of a
worker (`forked_worker`), from whose input it reads what xdist wants. It ends with its standard input.
"""

from __future__ import annotations

import atexit
import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence

import pytest
from _pytest.config import Config, _prepareconfig

REPORTERS = ("terminalreporter", "terminalprogress")
"""What prints for people. Workers tell the process that started them."""


class FailedReports:
    """Of what cannot be collected: workers tell of it."""

    def __init__(self) -> None:
        self.found: list[pytest.CollectReport] = []

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self.found.append(report)


def load(args: Sequence[str]) -> tuple[Config, pytest.Session, list[pytest.CollectReport]]:
    """Collect all tests."""
    printed, nothing = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    try:
        config = _prepareconfig([*args, "--numprocesses=0", "--dist=no"])
        session = pytest.Session.from_config(config)
        config._do_configure()
        config.pluginmanager.register(failed := FailedReports())
        for name in REPORTERS:
            config.pluginmanager.unregister(name=name)
        config.hook.pytest_sessionstart(session=session)
        config.hook.pytest_collection(session=session)
        config.pluginmanager.getplugin("capturemanager").stop_global_capturing()
        return config, session, failed.found
    finally:
        sys.stdout.flush()
        os.dup2(printed, 1)
        os.close(printed)
        os.close(nothing)


def serve(at: str) -> None:
    """Fork for each connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with who started it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who asked for a worker sees its end: the connection's
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(at)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    work(connection)


def work(connection: socket.socket) -> None:
    """Be a worker, to the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it is the process's own
    code = 1
    try:
        exec(eval(sys.stdin.readline()), {"__name__": "__main__"})  # noqa: S102, S307 - as execnet starts a process
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    place, *rest = sys.argv[1:]
    collected = load(rest)
    from tests import collected_worker  # the folder of all is in the path since pytest has read its settings

    collected_worker.collected = collected
    assert threading.active_count() == 1, "a fork has one thread"
    gc.collect()
    gc.freeze()
    serve(place)
