"""In which order tests run, and on which examples.

Each file goes to one worker, since its tests share what is slow to make, and so do files that share a platform
(`worker_scopes`). Any two may run at once, also those that start sandboxes and whole platforms: each has folders,
ports, users and control groups of its own, and looks at no other's.

Where the environment variable PILOTLIGHT_PASSED names a file, the process that the workers tell appends the ids of
tests that pass to it.
"""

from __future__ import annotations

import pilotlight_core.lean_libraries  # isort: skip # noqa: F401 - logs without the locals of each frame

import gc
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pilotlight_core.host.compiled import IS_COMPILED
from tests import collected_worker
from tests.example_counts import judged
from tests.fork_servers import fork_server
from tests.uncompiled import why_plain
from tests.worker_scopes import scheduling
from tools.compiled_tree import TREE

#: Fixtures that folders share; which backend anyio uses is for the `conftest.py` of a folder to say.
pytest_plugins = [
    "tests.fixtures.identity_provider",
    "tests.fixtures.nats",
    "tests.fixtures.postgres",
    "tests.fixtures.s3",
    "tests.fixtures.short_folder",
]

HERE = Path(__file__).parent
#: What takes longest begins first, so that the workers end together.
FIRST = ("hosts", "system", "security", "gateway", "runtime")
LONGEST = "test_schemathesis.py"
"""A file of a single test that takes minutes on a slow machine."""

# How long a machine takes to make examples says how busy it is, and nothing of what is tested. A change is judged by
# the same examples everywhere; `make test-seeds` looks for new ones.
settings.register_profile("seeded", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("repeatable", settings.get_profile("seeded"), derandomize=True, max_examples=judged(100))
settings.load_profile("repeatable")

# A shell's background has interrupts ignored, and so would everything that is started from here and is interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """`make test-compiled` fails, rather than run plain modules unnoticed."""
    if os.environ.get("PYTHONPATH", "").startswith(str(TREE)) and not IS_COMPILED:
        raise pytest.UsageError(f"PYTHONPATH leads to {TREE}, but pytest found plain modules before: see the Makefile")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tests that are collected stay: looking for garbage among them would take a tenth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put those first that take longest. Tests that kill processes are where `make test-crash` looks for them."""
    if IS_COMPILED:
        items[:] = [item for item in items if why_plain(item.nodeid) is None]
    elsewhere = [
        item.nodeid for item in items if item.get_closest_marker("crash") and HERE / "system" not in item.path.parents
    ]
    if elsewhere:
        raise pytest.UsageError(f"tests marked `crash` belong into tests/system: {elsewhere}")
    items.sort(key=lambda item: _rank(item.path))
    gc.freeze()  # modules and tests are a million objects, which each full collection would walk


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Workers are forks of a process that has collected the tests."""
    forks = fork_server("worker_forks", *map(str, config.invocation_params.args))
    for spec in specs:
        spec.python = f"{sys.executable} -I -S {HERE / 'forked_worker.py'} {forks}"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_getremotemodule() -> Any:
    """They have nothing to collect."""
    return collected_worker


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep together what shares a platform."""
    return scheduling(config, log)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down a test that passed."""
    passed = os.environ.get("PILOTLIGHT_PASSED")
    if passed and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(passed).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


@cache
def _rank(file: Path) -> int:
    place = file.relative_to(HERE)
    if place.name == LONGEST:
        return 0
    return FIRST.index(place.parts[0]) if place.parts[0] in FIRST else len(FIRST)
