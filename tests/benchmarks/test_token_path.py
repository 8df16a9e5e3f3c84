"""How times between tokens are counted."""

from __future__ import annotations

import pytest

from benchmarks.token_path import gaps_ms


def test_gaps_count_while_all_streams_run() -> None:
    """Of two tokens that come together the second one has not waited."""
    first = [(0.0, 1), (1.0, 1), (2.0, 2), (4.0, 1)]
    second = [(1.0, 1), (3.0, 1), (5.0, 1)]

    assert sorted(gaps_ms([first, second])) == [0.0, 1000.0, 2000.0, 2000.0]


def test_streams_one_after_the_other_have_no_gaps() -> None:
    """They say nothing of streams that run together."""
    with pytest.raises(SystemExit, match="ask for more tokens"):
        gaps_ms([[(0.0, 1), (1.0, 1)], [(2.0, 1), (3.0, 1)]])
