"""The stream verbs as they are spoken: pages, leader reads, repetition."""

from __future__ import annotations

import time
from typing import cast

import pytest

from pilotlight_core.bus import Bus, BusDown, NoResponders, StoreRefused
from pilotlight_core.bus.inbox import Inbox, Reply
from pilotlight_core.bus.jetstream import JetStream, _unix
from pilotlight_core.bus.streams import bucket_stream, key_subject
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import REGISTRY_BUCKET

STREAM = bucket_stream(REGISTRY_BUCKET)


async def test_pages_are_bounded_and_say_what_is_behind_them(bus: Bus) -> None:
    """By number of messages and by bytes; the last has nothing pending."""
    base = token()
    for number in range(5):
        await bus.kv(REGISTRY_BUCKET).put(f"{base}.{number}", b"x" * 700_000)
    subject = key_subject(REGISTRY_BUCKET, f"{base}.>")

    by_number = await bus.jetstream.page(STREAM, subject, 1, messages=1)
    by_bytes = await bus.jetstream.page(STREAM, subject, 1)
    rest = await bus.jetstream.page(STREAM, subject, by_bytes.records[-1].seq + 1, messages=5)

    assert (len(by_number.records), by_number.pending) == (1, 4)
    assert len(by_bytes.records) + by_bytes.pending == 5
    assert by_bytes.pending > 0
    assert rest.records[0].subject == key_subject(REGISTRY_BUCKET, f"{base}.{len(by_bytes.records)}")


async def test_a_leader_read_has_everything_of_the_record(bus: Bus) -> None:
    """Data, headers, sequence and time, as a page has them."""
    key = f"{token()}.k"
    seq = await bus.kv(REGISTRY_BUCKET).put(key, b"\x00value")
    subject = key_subject(REGISTRY_BUCKET, key)

    record = await bus.jetstream.last(STREAM, subject)
    page = await bus.jetstream.page(STREAM, subject, 1)

    assert record is not None
    assert (record.seq, record.subject, record.data) == (seq, subject, b"\x00value")
    assert record.headers["Nats-Msg-Id"] == page.records[0].headers["Nats-Msg-Id"]
    assert record.at == pytest.approx(page.records[0].at)
    assert abs(record.at - time.time()) < 60


async def test_a_stream_that_is_not_there_is_said(bus: Bus) -> None:
    """Reading it raises, in its own words."""
    with pytest.raises(NoResponders):
        await bus.jetstream.page("NOWHERE", ">", 1)
    with pytest.raises(StoreRefused, match="not found"):
        await bus.jetstream.last_sequence("NOWHERE")


class Answers:
    """Answers in their order, whatever is asked."""

    def __init__(self, *replies: Reply) -> None:
        self.left = list(replies)

    async def ask(self, *_asked: object, **_how: object) -> Reply:
        return self.left.pop(0)


@pytest.mark.parametrize("strange", [b"", b'{"seq": 6', b"+OK", b"\xff"])
async def test_an_answer_that_is_none_is_asked_for_again(strange: bytes) -> None:
    """It says nothing of the write, which is repeated under its id."""
    answers = Answers(Reply(strange, {}), Reply(b'{"seq": 7}', {}))
    assert await JetStream(cast("Inbox", answers)).store("$KV.jobs.a", b"x") == 7
    answers = Answers(Reply(strange, {}), Reply(b'{"state": {"last_seq": 9}}', {}))
    assert await JetStream(cast("Inbox", answers)).last_sequence("KV_jobs") == 9


async def test_streams_are_made_once_servers_have_found_each_other() -> None:
    """A cluster that forms has no place for copies yet; what else is refused is said at once."""

    def refusal(number: int) -> Reply:
        return Reply(b'{"error": {"code": 400, "err_code": %d, "description": "no"}}' % number, {})

    answers = Answers(refusal(10005), refusal(10008), refusal(10058), Reply(b"{}", {}))
    await JetStream(cast("Inbox", answers)).ensure_stream({"name": "USAGE"})
    assert answers.left == []
    changed = Answers(refusal(10058), refusal(10005), refusal(10058), refusal(10008), refusal(10058), Reply(b"{}", {}))
    await JetStream(cast("Inbox", changed)).ensure_stream({"name": "USAGE"})
    assert changed.left == []

    with pytest.raises(StoreRefused):
        await JetStream(cast("Inbox", Answers(refusal(10052)))).ensure_stream({"name": "USAGE"})


async def test_names_and_parts_of_streams(bus: Bus) -> None:
    """All streams are named; a part for none that is restored is heard by nobody."""
    assert STREAM in await bus.jetstream.names()
    with pytest.raises(NoResponders):
        await bus.jetstream.send("$JS.SNAPSHOT.RESTORE.NOWHERE.x", b"x", 1.0)
    answers = Answers(Reply(b"", {}), Reply(b'{"error": {"code": 500, "err_code": 10062, "description": "no"}}', {}))
    stream = JetStream(cast("Inbox", answers))
    await stream.send("part", b"x", 1.0)
    with pytest.raises(StoreRefused):
        await stream.send("part", b"", 1.0)


async def test_what_fails_for_a_moment_is_tried_again(bus: Bus) -> None:
    """Until it succeeds, or its time is over."""
    attempts: list[float] = []

    async def third_time_lucky(timeout_s: float) -> str:
        attempts.append(timeout_s)
        if len(attempts) < 3:
            raise BusDown
        return "done"

    assert await bus.jetstream.persist(third_time_lucky, 5.0) == "done"
    assert all(0 < timeout_s <= 2.0 for timeout_s in attempts)

    async def never(_timeout_s: float) -> str:
        raise BusDown

    with pytest.raises(BusDown):
        await bus.jetstream.persist(never, 0.05)


@pytest.mark.parametrize(
    ("text", "unix"),
    [("1970-01-01T00:00:01Z", 1.0), ("1970-01-01T00:01:00.5Z", 60.5), ("1970-01-01T00:00:00.123456789Z", 0.123456789)],
)
def test_the_servers_times_are_unix_seconds(text: str, unix: float) -> None:
    """With as many digits as it likes."""
    assert _unix(text) == pytest.approx(unix)
