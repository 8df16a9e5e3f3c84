"""Commands that no report shows yet: when they are sent again, and when nothing is expected of them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from pilotlight_autoscaler.observations.pending_commands import (
    BIND_LOST_S,
    BIND_TRIES,
    FIRST_PAUSE_S,
    GIVING_WAY_TRIES,
    PendingBind,
    stuck_devices,
)
from tests.builders.nodes import bind

SENT = PendingBind(bind=bind("new1"), node="n1", at=10.0)


def test_a_bind_that_was_lost_is_sent_again_a_few_times() -> None:
    """After the same pause; then nothing is expected of it."""
    assert not SENT.is_due(10.0 + BIND_LOST_S)
    assert SENT.is_due(10.1 + BIND_LOST_S)
    assert not replace(SENT, tries=BIND_TRIES).is_due(100.0)
    assert not SENT.is_over(10.0 + BIND_LOST_S * BIND_TRIES)
    assert SENT.is_over(10.1 + BIND_LOST_S * BIND_TRIES)


def test_one_for_which_something_gives_way_is_sent_again_after_growing_pauses() -> None:
    """Each twice as long as the one before, up to that of a lost one."""
    waits = [
        next(n / 100 for n in range(1, 1_000) if replace(SENT, gives_way=True, tries=tries).is_due(10.0 + n / 100))
        for tries in range(1, GIVING_WAY_TRIES)
    ]

    assert waits[:6] == pytest.approx([FIRST_PAUSE_S * 2**n for n in range(6)], abs=0.011)
    assert max(waits) <= BIND_LOST_S + 0.02
    assert not replace(SENT, gives_way=True, tries=GIVING_WAY_TRIES).is_due(1_000.0)


def test_where_nothing_gave_way_others_are_tried_first() -> None:
    """Once it was asked for in vain so often; a bind that was merely lost says nothing of its GPU."""
    on_gpu = msgspec.structs.replace(bind("new1"), slice="GPU-1")
    waiting = replace(SENT, bind=on_gpu, gives_way=True)
    over = SENT.at + BIND_LOST_S * BIND_TRIES + 0.1

    assert stuck_devices([waiting], SENT.at + 1.0) == []
    assert stuck_devices([waiting, replace(SENT, bind=on_gpu)], over) == [("n1", "GPU-1")]
