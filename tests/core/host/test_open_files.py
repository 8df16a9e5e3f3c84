"""A process takes as many files as its host lets it have."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from pilotlight_core.host.open_files import allow_open_files
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, 512))
print(allow_open_files(), resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("soft", [64, 512])
def test_the_own_bound_is_raised_to_the_hosts(soft: int) -> None:
    """In a process of its own, whose bound may be lowered; what is there already stays."""
    told = subprocess.run([sys.executable, "-c", SCRIPT.format(soft=soft)], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == "512 (512, 512)"
