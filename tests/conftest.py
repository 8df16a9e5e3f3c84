"""Which tests may run beside each other.

Those of a file stay together, since they share what is slow to make. Those that start sandboxes and whole platforms are
one file in this sense: they look at the host's processes, users and control groups, where two would meet.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

HERE = Path(__file__).parent
HOST = frozenset({"runtime", "system", "examples"})

# How long a machine takes to make examples says how busy it is, and nothing of what is tested. A change is judged by
# the same examples everywhere; `make test-seeds` looks for new ones.
settings.register_profile("repeatable", suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.register_profile("seeded", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")

# A shell's background has interrupts ignored, and so would everything that is started from here and is interrupted.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The host's tests come first: they take longest, and one worker has them all."""
    groups = {item: _group(item) for item in items}
    for item, group in groups.items():
        item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: groups[item] != "host")


def _group(item: pytest.Item) -> str:
    place = item.path.relative_to(HERE)
    return "host" if place.parts[0] in HOST else str(place)
