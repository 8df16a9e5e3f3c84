"""A host's clock: whether anybody keeps it, and how far it is from a gateway's and from a time server's."""

from __future__ import annotations

import ctypes
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from pilotlight_core.model.api.node_api import CLOCK_OFF_S
from pilotlight_supervisor.doctor.finding import Finding, Health, judged

TIMEX_LONGS = 64
"""More than `struct timex` has."""
STATUS_AT = 5
STA_UNSYNC = 0x40
NTP_EPOCH = 2_208_988_800
"""Seconds from 1900 to 1970."""
NTP_PORT = 123
KEEP_TIME = "timedatectl set-ntp true    # or: apt-get install -y chrony"


@dataclass(frozen=True, kw_only=True)
class ClockOffset:
    """How far this host's clock is behind another, give or take `within_s`."""

    of: str
    ahead_s: float
    within_s: float


def is_kept() -> bool | None:
    """Whether the kernel was told, by a program such as chrony, that its time is right; None: it does not say."""
    try:
        told = (ctypes.c_long * TIMEX_LONGS)()
        if ctypes.CDLL(None, use_errno=True).adjtimex(told) < 0:
            return None
    except (OSError, AttributeError):
        return None
    return not told[STATUS_AT] & STA_UNSYNC


def offset_by_date(of: str, date: str, asked_at: float, answered_at: float) -> ClockOffset | None:
    """From the `Date` of an HTTP answer, which has whole seconds; None: it is no date."""
    try:
        theirs = parsedate_to_datetime(date).timestamp() + 0.5
    except (TypeError, ValueError):
        return None
    half = (answered_at - asked_at) / 2
    return ClockOffset(of=of, ahead_s=theirs - (asked_at + half), within_s=0.5 + half)


def ask_ntp(host: str, timeout_s: float) -> ClockOffset:
    """Ask a time server once. Raises OSError: it does not answer, or says that it does not know."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(timeout_s)
        asker.connect((host, NTP_PORT))
        asked_at = time.time()
        asker.send(b"\x23" + bytes(47))  # version 4, a client
        answer = asker.recv(512)
        answered_at = time.time()
    return ntp_offset(host, answer, asked_at, answered_at)


def ntp_offset(of: str, answer: bytes, asked_at: float, answered_at: float) -> ClockOffset:
    """From a server's answer. Raises OSError: it is none, or of a server that does not know the time."""
    if len(answer) < 48 or answer[0] & 7 != 4 or not answer[1] or answer[0] >> 6 == 3:
        raise OSError("it does not know the time")
    came, went = (high + low / 2**32 - NTP_EPOCH for high, low in struct.iter_unpack(">II", answer[32:48]))
    return ClockOffset(
        of=of, ahead_s=((came - asked_at) + (went - answered_at)) / 2, within_s=max(0.0, answered_at - asked_at) / 2
    )


def clock_findings(*, kept: bool | None, offsets: tuple[ClockOffset, ...]) -> Iterator[Finding]:
    """Whether it is right, as far as anybody says."""
    yield judged(
        "clock kept", {True: "by a time server", False: "by nobody", None: "the kernel does not say"}[kept],
        "chrony, systemd-timesyncd or the like sets it", ok=bool(kept), otherwise=Health.WARN, todo=KEEP_TIME,
    )  # fmt: skip
    for one in offsets:
        sure = max(0.0, abs(one.ahead_s) - one.within_s)
        found = "as it" if abs(one.ahead_s) <= one.within_s else f"{abs(one.ahead_s):.1f} s {_where(one.ahead_s)}"
        yield judged(
            f"clock of {one.of}", f"this host's is {found}, within {one.within_s:.2g} s",
            f"within {CLOCK_OFF_S:g} s of it", ok=sure <= CLOCK_OFF_S, otherwise=Health.FAIL,
            todo=KEEP_TIME,
        )  # fmt: skip


def _where(ahead_s: float) -> str:
    return "behind" if ahead_s > 0 else "ahead"
