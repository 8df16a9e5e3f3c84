"""Times of this machine's zone, as people write and read them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import typer

from pilotlight.cli.local_times import read_instant, show_instant


@pytest.fixture(autouse=True)
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in Berlin."""
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "now", "read"),
    [
        ("18:00", "2026-11-24 12:00", "2026-11-24 17:00"),
        ("18:00", "2026-11-24 17:00", "2026-11-25 17:00"),
        ("03:00", "2026-10-24 20:00", "2026-10-25 02:00"),  # in the night the clock goes back
        ("02:30", "2026-03-29 00:00", "2026-03-29 01:30"),  # a time that the clock leaves out
        ("2026-12-24 18:00", "2026-11-24 12:00", "2026-12-24 17:00"),
        ("2026-07-01", "2026-11-24 12:00", "2026-06-30 22:00"),
        ("2026-12-24T18:00+00:00", "2026-11-24 12:00", "2026-12-24 18:00"),
    ],
)
def test_a_time_is_the_next_of_this_zone(text: str, now: str, read: str) -> None:
    """With a date it is that one, with a zone of that one."""
    assert read_instant(text, "--until", utc(now)) == utc(read)


@pytest.mark.parametrize("text", ["soon", "25:00", "6pm", "18", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    """With an example."""
    with pytest.raises(typer.BadParameter, match=r"--until .*expected a time such as 18:00"):
        read_instant(text, "--until", 0.0)


def test_a_time_is_shown_with_its_zone() -> None:
    """Seconds only where there are some."""
    assert show_instant(utc("2026-11-24 17:00")) == "2026-11-24 18:00 CET"
    assert show_instant(utc("2026-07-24 16:00:05")) == "2026-07-24 18:00:05 CEST"
