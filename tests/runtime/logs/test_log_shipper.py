"""Log lines on their way to their stream."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import BusDown
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.logs import log_shipper
from pilotlight_runtime.logs.log_shipper import BATCH_LINES, LogKey, LogShipper
from tests.waiting import until

TOPIC = LogKey("acme", "demo", "f")


class Stream:
    """Keeps what is stored; `down` refuses, `stored_anyway` keeps it and says that it did not."""

    def __init__(self) -> None:
        self.kept: dict[str, LogBatch] = {}
        self.subjects: list[str] = []
        self.down = False
        self.stored_anyway = False

    async def store(self, subject: str, message: Message, *, id: str, timeout: float) -> int:  # noqa: A002
        if self.down and not self.stored_anyway:
            raise BusDown("down")
        assert isinstance(message, LogBatch)
        self.kept.setdefault(id, message)
        self.subjects.append(subject)
        if self.stored_anyway:
            raise BusDown("the answer was lost")
        return 1

    @property
    def texts(self) -> list[str]:
        return [line.text for batch in self.kept.values() for line in batch.lines]


def line(text: str) -> LogLine:
    return LogLine(1.0, "stdout", text, "c1")


async def test_lines_are_stored_in_batches_of_their_function(anyio_backend: str) -> None:
    """In order, at most 256 together."""
    stream = Stream()
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    for number in range(BATCH_LINES + 1):
        shipper.offer(TOPIC, line(str(number)))

    await shipper.ship()

    assert stream.texts == [str(number) for number in range(BATCH_LINES + 1)]
    assert [len(batch.lines) for batch in stream.kept.values()] == [BATCH_LINES, 1]
    assert set(stream.subjects) == {"logs.local.n1.acme.demo.f"}
    assert shipper.statistics().waiting_bytes == 0


async def test_large_lines_make_small_batches(anyio_backend: str) -> None:
    """A batch must fit a message."""
    stream = Stream()
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    for _ in range(40):
        shipper.offer(TOPIC, line("x" * 8_000))

    await shipper.ship()

    assert all(len(batch.lines) <= 16 for batch in stream.kept.values())
    assert len(stream.texts) == 40


async def test_nothing_is_lost_or_doubled_over_a_reconnect(anyio_backend: str) -> None:
    """A batch that may be stored already is sent again as it was, under the same id."""
    stream = Stream()
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    shipper.offer(TOPIC, line("one"))
    stream.stored_anyway = True
    await shipper.ship()
    shipper.offer(TOPIC, line("two"))
    stream.stored_anyway = False

    await shipper.ship()

    assert stream.texts == ["one", "two"]


async def test_while_the_bus_is_away_memory_is_bounded(anyio_backend: str) -> None:
    """What does not fit is dropped and counted, and the log says so."""
    stream = Stream()
    stream.down = True
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    for _ in range(2 + log_shipper.WAITING_OF_TENANT // 16_000):
        shipper.offer(TOPIC, line("x" * 8_000))
    await shipper.ship()
    dropped = shipper.statistics().dropped
    assert dropped > 0

    stream.down = False
    await shipper.ship()
    shipper.offer(TOPIC, line("again"))
    await shipper.ship()

    assert stream.texts[-2:] == [f"{dropped} lines were dropped: the log could not be stored", "again"]


async def test_a_flood_is_dropped_at_the_node_and_the_log_says_so(anyio_backend: str) -> None:
    """Once when it begins and once when it is over, with how much; another tenant's lines pass."""
    stream, at = Stream(), [0.0]
    shipper = LogShipper(stream, region="local", node="n1", instance="i1", clock=lambda: at[0])
    shipper.set_limit("acme", 1_000_000)
    other = LogKey("zoo", "demo", "f")
    for number in range(1_000):
        shipper.offer(TOPIC, line("x" * 900))
        if number % 100 == 0:
            shipper.offer(other, line(f"zoo {number}"))
    await shipper.ship()

    limit = "acme may log 1 MB an hour on a node, a tenth of it at once (the limit log_bytes_per_hour)"
    assert [text for text in stream.texts if "zoo" in text] == [f"zoo {number}" for number in range(0, 1_000, 100)]
    assert [text for text in stream.texts if "acme" in text] == [f"lines from here on are dropped for a while: {limit}"]
    assert stream.texts.count("x" * 900) == 100
    at[0] = 60.0
    await shipper.ship()
    assert stream.texts[-1] == f"900 lines (0.8 MB) were dropped: {limit}"
    shipper.offer(TOPIC, line("again"))
    await shipper.ship()
    assert stream.texts[-1] == "again"


async def test_a_limit_counts_bytes_whatever_was_written(anyio_backend: str) -> None:
    """A character may be three of them."""
    stream = Stream()
    shipper = LogShipper(stream, region="local", node="n1", instance="i1", clock=lambda: 0.0)
    shipper.set_limit("acme", 1_000_000)
    for _ in range(200):
        shipper.offer(TOPIC, line("\ufffd" * 300))
    await shipper.ship()

    assert stream.texts.count("\ufffd" * 300) == 100


async def test_one_tenant_does_not_take_all_the_room_for_waiting_lines(anyio_backend: str) -> None:
    """While the bus is down another's lines wait, and come first or in their turn when it is back."""
    stream = Stream()
    stream.down = True
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    for _ in range(2 + log_shipper.WAITING_BYTES // 16_000):
        shipper.offer(TOPIC, line("x" * 8_000))
    shipper.offer(LogKey("zoo", "demo", "f"), line("quiet"))

    stream.down = False
    await shipper.ship()

    assert "quiet" in stream.texts[: 2 * BATCH_LINES]


async def test_lines_leave_by_themselves(anyio_backend: str) -> None:
    """Within a tenth of a second, or at once when a batch is full; also those that come after a rest."""
    stream = Stream()
    shipper = LogShipper(stream, region="local", node="n1", instance="i1")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(shipper.run())
        for number in range(BATCH_LINES):
            shipper.offer(TOPIC, line(str(number)))
        await until(lambda: stream.kept)
        shipper.offer(TOPIC, line("later"))
        await until(lambda: len(stream.kept) == 2)
        running.cancel()

    assert len(stream.texts) == BATCH_LINES + 1
