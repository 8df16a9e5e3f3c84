"""A host's clock, beside others."""

from __future__ import annotations

import struct

import pytest

from pilotlight_supervisor.doctor.clock_facts import (
    NTP_EPOCH,
    ClockOffset,
    clock_findings,
    is_kept,
    ntp_offset,
    offset_by_date,
)
from pilotlight_supervisor.doctor.finding import Health

DATE = "Thu, 01 Jan 1970 00:16:40 GMT"


def an_answer(came: float, went: float, *, mode: int = 4, stratum: int = 2, leap: int = 0) -> bytes:
    """Of a time server."""
    head = bytes([leap << 6 | 4 << 3 | mode, stratum]) + bytes(30)
    return head + b"".join(struct.pack(">II", int(at + NTP_EPOCH), int((at % 1) * 2**32)) for at in (came, went))


def test_the_date_of_an_answer_is_in_the_middle_of_its_second() -> None:
    """It is as sure as that second and the way are long."""
    offset = offset_by_date("the gateway", DATE, 997.0, 997.2)

    assert offset is not None
    assert offset.ahead_s == pytest.approx(3.4)
    assert offset.within_s == pytest.approx(0.6)
    assert offset_by_date("the gateway", "yesterday", 0.0, 0.0) is None


def test_a_time_server_is_asked_over_the_way_there_and_back() -> None:
    """As RFC 5905 has it: both ways are taken for equal."""
    offset = ntp_offset("pool", an_answer(103.0, 103.5), 100.0, 101.0)

    assert offset.ahead_s == pytest.approx(2.75)
    assert offset.within_s == pytest.approx(0.5)


@pytest.mark.parametrize(
    "answer",
    [b"", an_answer(1, 1, mode=3), an_answer(1, 1, stratum=0), an_answer(1, 1, leap=3)],
    ids=["short", "not a server", "refused", "not synchronised"],
)
def test_a_server_that_does_not_know_is_not_believed(answer: bytes) -> None:
    """Nor is what is no answer."""
    with pytest.raises(OSError, match="does not know"):
        ntp_offset("pool", answer, 0.0, 0.0)


def test_a_good_clock_has_nothing_to_say() -> None:
    """Also one whose distance cannot be told from none."""
    near = ClockOffset(of="the gateway", ahead_s=2.4, within_s=0.5)

    assert {each.health for each in clock_findings(kept=True, offsets=(near,))} == {Health.OK}


@pytest.mark.parametrize("kept", [False, None])
def test_a_clock_that_nobody_keeps_is_a_warning(kept: bool | None) -> None:
    """The kernel says that nobody does, or nothing."""
    (line,) = clock_findings(kept=kept, offsets=())

    assert (line.health, line.name) == (Health.WARN, "clock kept")


@pytest.mark.parametrize(("ahead_s", "where"), [(5.0, "5.0 s behind"), (-5.0, "5.0 s ahead")])
def test_a_clock_that_is_off_fails(ahead_s: float, where: str) -> None:
    """With which way."""
    line = list(clock_findings(kept=True, offsets=(ClockOffset(of="pool", ahead_s=ahead_s, within_s=0.1),)))[1]

    assert line.health is Health.FAIL
    assert where in line.found


def test_the_kernel_is_asked() -> None:
    """It says yes or no, or cannot be asked."""
    assert is_kept() in (True, False, None)
