"""When a silent home is followed by another one."""

from __future__ import annotations

import pytest

from pilotlight_gateway.limits.silent_homes import (
    LEASE_S,
    PATIENCE_S,
    SOON_S,
    TAKEOVER_S,
    HomeAvailability,
    home_expected_at,
)

SHARD = 7


def test_a_silent_home_is_succeeded_when_its_lease_has_ended() -> None:
    """The lease counts from its last renewal or, if that is unknown, from the silence."""
    assert home_expected_at(9.0, 10.0) == 9.0 + LEASE_S + TAKEOVER_S
    assert home_expected_at(None, 10.0) == 10.0 + LEASE_S + TAKEOVER_S


def test_a_lost_home_is_back_or_succeeded_whichever_is_first() -> None:
    """Its process is restarted as fast as the last time, or its lease ends."""
    assert home_expected_at(9.9, 10.0, 1.5) == 11.5
    assert home_expected_at(9.1, 10.0, 2.5) == 9.1 + LEASE_S + TAKEOVER_S


def test_the_time_of_a_restart_is_learnt() -> None:
    """Nothing is assumed of the first restart; the last one has a weight of a half."""
    silence = HomeAvailability(lambda _: at)
    waits = []
    for at, took in ((0.0, 1.0), (100.0, 2.0), (200.0, 1.0)):
        silence.process_lost("g1")
        waits.append(silence.wait(SHARD, "g1", at + PATIENCE_S))
        silence.answered(SHARD, at + took)
        silence.keep([])

    assert waits == pytest.approx([wait - PATIENCE_S for wait in (LEASE_S + TAKEOVER_S, 1.0, 1.5)])


def test_a_frozen_home_is_no_restart() -> None:
    """It answers again without having been restarted."""
    silence = HomeAvailability(lambda _: 0.0)
    silence.wait(SHARD, "g1", PATIENCE_S)
    silence.answered(SHARD, 1.0)
    silence.process_lost("g1")

    assert silence.wait(SHARD, "g1", 2.0) == pytest.approx(LEASE_S + TAKEOVER_S - 2.0)


def test_the_wait_grows_shorter_until_there_is_a_home() -> None:
    """Once the lease is gone without a new home, the wait is SOON_S."""
    renewed_at: dict[str, float] = {"g1": 9.5}
    silence = HomeAvailability(renewed_at.get)
    again = 9.5 + LEASE_S + TAKEOVER_S

    assert silence.wait(SHARD, "g1", 10.25) == pytest.approx(again - 10.25)
    renewed_at.clear()
    assert silence.wait(SHARD, "", 12.0) == pytest.approx(again - 12.0)
    assert silence.wait(SHARD, "", 20.0) == SOON_S


def test_without_a_renewal_a_whole_lease_is_assumed() -> None:
    """It counts from when the call began to wait."""
    assert HomeAvailability(lambda _: None).wait(SHARD, "", 10.0) == pytest.approx(LEASE_S + TAKEOVER_S - PATIENCE_S)


def test_a_loss_that_is_noticed_later_shortens_the_wait() -> None:
    """It is forgotten with the gateway's lease."""
    silence = HomeAvailability(lambda _: 10.0)
    silence.process_lost("g1")
    silence.wait(SHARD + 2, "g1", 8.0)
    silence.answered(SHARD + 2, 8.0 - PATIENCE_S + 1.0)
    silence.keep([])
    silence.wait(SHARD, "g1", 10.25)
    silence.process_lost("g1")
    assert silence.wait(SHARD, "g1", 10.5) == pytest.approx(1.0 - 0.5)

    silence.keep(["g2"])
    assert silence.wait(SHARD + 1, "g1", 10.5) == pytest.approx(LEASE_S + TAKEOVER_S - 0.5)


def test_a_call_that_waited_while_the_home_came_back_comes_again_soon() -> None:
    """Its own wait ended after another call had its answer."""
    silence = HomeAvailability(lambda _: 10.0)
    silence.wait(SHARD, "g1", 10.25)
    silence.answered(SHARD, 12.0)
    silence.answered(SHARD + 1, 12.0)

    assert silence.wait(SHARD, "g2", 12.1) == SOON_S
    assert silence.wait(SHARD, "g2", 12.5) > SOON_S
