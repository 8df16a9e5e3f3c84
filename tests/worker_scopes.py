"""Which worker runs which files: those that share a platform stay together, since each worker would start its own.

So do those that share a database server.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[1]
PLATFORMS = {"tests/system": 2, "tests/security": 1}
"""Folders with a fixture `platform` for all their files, and how many workers start one."""
PAIR = "pair: Platform"
"""What a file says that uses the platform with two gateways: one worker starts it."""
HOSTS, WORLD = "tests/hosts", "world: HostWorld"
"""A folder, and what its files say that use the fleet over hosts: one worker starts it."""
DATABASES = ("tests/gateway/ledger",)
"""Folders whose tests share a PostgreSQL: one worker runs each of them."""


class SharedPlatformScheduling(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """By files, but for those that share a platform."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.split("::", 1)[0])


@cache
def scope_of(file: str) -> str:
    """What one worker runs: the files with the same answer."""
    folder = file.rsplit("/", 1)[0]
    if folder in DATABASES:
        return folder
    if folder == HOSTS and WORLD in (ROOT / file).read_text():
        return f"{folder} world"
    if folder not in PLATFORMS:
        return file
    if PAIR in (ROOT / file).read_text():
        return f"{folder} pair"
    if not shares(ROOT / file):
        return file
    turn = sum(shares(each) for each in (ROOT / folder).glob("test_*.py") if each.name < Path(file).name)
    return f"{folder} {turn % PLATFORMS[folder]}"


def shares(file: Path) -> bool:
    """Whether tests of a file use the platform of their folder; others start one of their own."""
    text = file.read_text()
    return "platform: Platform" in text and "run_platform" not in text and PAIR not in text


def scheduling(config: pytest.Config, log: Any) -> SharedPlatformScheduling | None:
    """What distributes tests, where they go by files."""
    return SharedPlatformScheduling(config, log) if config.getvalue("dist") == "loadfile" else None
