"""A function's log is kept to its last bytes."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.wire import encode
from pilotlight_gateway.duties.log_trimmer import TENANTS_OF_NODE, LogScopes, LogSizes, LogTrimmer, bytes_of


def test_a_log_that_is_short_enough_is_left_alone() -> None:
    """Nothing is trimmed until the bytes of one function pass the bound; another's do not count."""
    sizes = LogSizes(kept=100)

    assert sizes.add("a", "a", 1, 60) == []
    assert sizes.add("b", "b", 2, 60) == []
    assert sizes.add("a", "a", 3, 40) == []


def test_a_trim_keeps_the_newest_and_a_little_slack() -> None:
    """The sequence it names is the first that stays; one batch always stays."""
    sizes = LogSizes(kept=100)
    for seq in range(1, 11):
        assert sizes.add("a", "a", seq, 10) == []

    assert sizes.add("a", "a", 11, 10) == [("a", 3)]
    assert sizes.add("a", "a", 12, 1000) == [("a", 12)]


def test_small_batches_are_remembered_together() -> None:
    """A full log is remembered in a bounded number of pieces, and a trim still keeps about what it should."""
    sizes = LogSizes(kept=1_000_000)

    trims = [purged for seq in range(1, 20_000) for purged in sizes.add("a", "a", seq, 100)]

    kept = [seq - before for seq, (_, before) in zip(range(10_001, 20_000, 1_000), trims, strict=False)]
    assert len(trims) == 10
    assert all(8_500 < count <= 9_500 for count in kept)


def test_who_has_the_most_gives_way() -> None:
    """A tenant's flood on a node displaces its own lines, whether the node's bound is reached or that of all."""
    scopes = LogScopes(kept=10**9, everything=10_000)
    quiet = [f"logs.local.n{number % 2}.quiet{number}.app.f" for number in range(5)]
    for seq, subject in enumerate(quiet, 1):
        assert scopes.add(subject, seq, 100) == []

    purged = [one for seq in range(10, 1_000) for one in scopes.add(f"logs.local.n{seq % 2}.loud.app.f", seq, 100)]

    assert {subject for subject, _ in purged} == {"logs.local.n0.loud.>", "logs.local.n1.loud.>"}


def test_a_node_that_invents_tenants_displaces_its_own_lines() -> None:
    """However many there are, and whosever names it takes."""
    scopes = LogScopes(kept=10**9, everything=1_000_000)
    assert scopes.add("logs.local.good.acme.app.f", 1, 50) == []

    purged = [one for seq in range(2, 20_000) for one in scopes.add(f"logs.local.bad.t{seq}.app.f", seq, 100)]

    assert {subject for subject, _ in purged} == {"logs.local.bad.>"}


def test_tenants_beyond_those_counted_apart_displace_only_one_another() -> None:
    """A newcomer's flood on a node of many tenants takes no line of theirs; what has gone is not purged again."""
    scopes = LogScopes(kept=10**9, everything=1_000_000)
    for seq in range(TENANTS_OF_NODE):
        assert scopes.add(f"logs.local.n1.t{seq}.app.f", seq, 100) == []
    assert scopes.add("logs.local.n1.late.app.f", 1_999, 100) == []

    purged = [one for seq in range(2_000, 30_000) for one in scopes.add("logs.local.n1.loud.app.f", seq, 100)]

    assert {subject for subject, _ in purged} == {"logs.local.n1.late.>", "logs.local.n1.loud.>"}
    assert [subject for subject, _ in purged].count("logs.local.n1.late.>") == 1


def test_a_batch_counts_what_it_takes_whatever_was_written() -> None:
    """Not less than its bytes on the bus, of which a character may take three."""
    line = LogLine(at=0.0, stream="stdout", text="\ufffd" * 8_192, container="c")
    batch = LogBatch(lines=(line,) * 10)

    assert bytes_of(DecodedMessage(seq=1, subject="logs", message=batch, at=0.0)) >= len(encode(batch))


async def test_a_flood_displaces_no_other_tenants_lines(bus: Bus) -> None:
    """On a real stream: the quiet tenant's oldest line is there when thousands of the other's have gone."""
    node = f"n{token(6)}"
    quiet, loud = (subjects.logs("local", node, tenant, "app", "f") for tenant in ("quiet", "loud"))
    duty = asyncio.ensure_future(LogTrimmer(bus, holder=token(8), everything=20_000).run())

    async def store(subject: str, number: int) -> None:
        line = LogLine(at=0.0, stream="stdout", text=f"line {number}" + " " * 100, container="c")
        await bus.store(subject, LogBatch(lines=(line,)), id=f"{subject}{number}")

    async def kept(subject: str) -> list[str]:
        found = [stored async for stored in bus.read_stream(subjects.LOGS_STREAM, subject)]
        return [stored.message.lines[0].text.strip() for stored in found]

    try:
        async with asyncio.timeout(60):
            await store(loud, 0)
            number = 1
            while (await kept(loud))[0] == "line 0":  # then the duty counts
                await store(loud, number)
                number += 1
            await store(quiet, 0)
            last = number + 500
            while number < last or int((await kept(loud))[0].removeprefix("line ")) < last - 200:
                await store(loud, number)
                number += 1
            assert (await kept(quiet)) == ["line 0"]
    finally:
        duty.cancel()


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
