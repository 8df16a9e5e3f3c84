"""Which lines, and since when."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_gateway.deploys.function_logs import LogQuery, MemoryLogs, read_lines, read_since, read_tail

NOW = 1_790_000_000.0


@pytest.mark.parametrize(
    ("text", "since"),
    [("30s", NOW - 30), ("10m", NOW - 600), ("1.5h", NOW - 5400), ("2d", NOW - 172_800), ("90", NOW - 90),
     ("1789999000.5", 1_789_999_000.5)],
)  # fmt: skip
def test_a_time_ago_and_a_time_are_told_apart(text: str, since: float) -> None:
    """A unit means ago, and so does a bare number that is too small for a date."""
    assert read_since(text, NOW) == since


@pytest.mark.parametrize("text", ["", "yesterday", "-5m", "10w", "1e9", "9" * 30])
def test_what_is_no_time_is_refused(text: str) -> None:
    """By its field."""
    with pytest.raises(BadInput):
        read_since(text, NOW)


@pytest.mark.parametrize("text", ["", "-1", "1.5", "100001", "9" * 30, "²"])
def test_what_is_no_number_of_lines_is_refused(text: str) -> None:
    """By its field."""
    with pytest.raises(BadInput):
        read_tail(text)


async def test_the_tail_is_followed_by_what_came_after_it() -> None:
    """No line twice and none lost between the two readings."""
    subject = "logs.local.acme.shop.hello"
    batches = [
        DecodedMessage(
            seq=n, subject=subject, at=0.0, message=LogBatch(lines=(LogLine(float(n), "stdout", str(n), "c"),))
        )
        for n in range(1, 6)
    ]
    source = MemoryLogs(
        kept=[*batches[:3], DecodedMessage(seq=9, subject=subject, at=0.0, message=UsageBatch(events=()))]
    )
    lines = read_lines(source, LogQuery(tenant="acme", app="shop", tail=2, follow=True))
    seen = [(await anext(lines)).text, (await anext(lines)).text]
    source.kept += batches[3:]
    seen += [line.text async for line in lines]

    assert seen == ["2", "3", "4", "5"]
