"""nats-py without what is not used of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

LEAN = """
import sys
import pilotlight_core.bus
assert "aiohttp" not in sys.modules
import aiohttp
assert aiohttp.ClientSession
"""
WITH_THE_CLIENT = """
import aiohttp
import pilotlight_core.bus
import sys
assert sys.modules["aiohttp"] is aiohttp
"""


@pytest.mark.parametrize("program", [LEAN, WITH_THE_CLIENT])
def test_the_bus_needs_no_library_of_websockets(program: str) -> None:
    """Whoever does may import it, before or after."""
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
