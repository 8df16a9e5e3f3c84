"""A function's log is kept to its last bytes."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_gateway.duties.log_trimmer import LogSizes, LogTrimmer


def test_a_log_that_is_short_enough_is_left_alone() -> None:
    """Nothing is trimmed until the bytes of one function pass the bound; another's do not count."""
    sizes = LogSizes(kept=100)

    assert sizes.add("a", 1, 60) is None
    assert sizes.add("b", 2, 60) is None
    assert sizes.add("a", 3, 40) is None


def test_a_trim_keeps_the_newest_and_a_little_slack() -> None:
    """The sequence it names is the first that stays; one batch always stays."""
    sizes = LogSizes(kept=100)
    for seq in range(1, 11):
        assert sizes.add("a", seq, 10) is None

    assert sizes.add("a", 11, 10) == 3
    assert sizes.add("a", 12, 1000) == 12


async def test_the_oldest_lines_of_a_chatty_function_go(bus: Bus) -> None:
    """On a real stream: what is left is less than the bound, and it is the end."""
    subject = subjects.logs("local", f"n{token(6)}", "acme", "app", "chatty")
    duty = asyncio.ensure_future(LogTrimmer(bus, holder=token(8), kept=2_000).run())
    try:
        async with asyncio.timeout(30):
            number, first = 0, "line 0"
            while first == "line 0":  # the duty starts to count at some line, and trims a few after it
                line = LogLine(at=0.0, stream="stdout", text=f"line {number}" + " " * 100, container="c")
                await bus.store(subject, LogBatch(lines=(line,)), id=str(number))
                number += 1
                kept = [stored async for stored in bus.read_stream(subjects.LOGS_STREAM, subject)]
                first = kept[0].message.lines[0].text.strip()
    finally:
        duty.cancel()

    assert len(kept) * 100 < 2_500
    assert kept[-1].message.lines[0].text.strip() == f"line {number - 1}"
