"""The garbage collector of a serving process."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc
from pilotlight_core.host.gc_tuning import YOUNG, freeze, freeze_again
kept = [[n] for n in range(1000)]
freeze()
frozen = gc.get_freeze_count()
assert frozen >= 1000, frozen
assert gc.get_threshold()[0] == YOUNG
more = [[n] for n in range(1000)]
freeze_again()
assert gc.get_freeze_count() >= frozen + 1000
"""


def test_what_lives_as_long_as_the_process_is_never_walked_again() -> None:
    """At the start, and once more for what was made since; in a process of its own, since it is for good."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
