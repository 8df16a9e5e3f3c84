"""Which lines, and since when."""

from __future__ import annotations

import time
from typing import Any

import pytest

from pilotlight_core.bus import Bus, DecodedMessage
from pilotlight_core.host.node_faults import NodeFaults
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.node_reports.node_checks import NodeFault
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_gateway.deploys.function_logs import BusLogs, LogQuery, MemoryLogs, read_lines, read_since, read_tail
from pilotlight_gateway.deploys.line_owners import LineOwner, MemoryLineOwners

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
    subject = "logs.local.n1.acme.shop.hello"
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


def line(text: str, container: str) -> LogLine:
    return LogLine(time.time(), "stdout", text, container)


async def test_a_node_writes_lines_of_its_own_containers(bus: Bus) -> None:
    """And of no other function, node or container: neither followed nor read later; it is counted."""
    tenant, faults = f"t{token(6)}", NodeFaults()
    function = f"{tenant}:shop.hello"
    owners = MemoryLineOwners(known={"c1": LineOwner("n1", function), "c2": LineOwner("n2", f"{tenant}:shop.bye")})
    logs = BusLogs(bus=bus, region="local", owners=owners, faults=faults)
    stored = [
        (subjects.logs_before_nodes("local", tenant, "shop", "hello"), line("of before", "old")),
        (subjects.logs("local", "n1", tenant, "shop", "hello"), line("mine", "c1")),
        (subjects.logs("local", "n2", tenant, "shop", "hello"), line("another node's container", "c1")),
        (subjects.logs("local", "n2", tenant, "shop", "hello"), line("another function's container", "c2")),
        (subjects.logs("local", "n1", tenant, "shop", "hello"), line("nobody's container", "c9")),
        (subjects.logs("local", "n2", tenant, "shop", "bye"), line("yours", "c2")),
    ]
    for number, (subject, each) in enumerate(stored):
        await bus.store(subject, LogBatch(lines=(each,)), id=str(number))

    async def texts(**more: Any) -> list[str]:
        return [one.text async for one in read_lines(logs, LogQuery(tenant=tenant, app="shop", **more))]

    assert await texts() == ["of before", "mine", "yours"]
    assert await texts(function="hello") == ["of before", "mine"]
    assert await texts(tail=1) == ["yours"]
    followed = read_lines(logs, LogQuery(tenant=tenant, app="shop", function="hello", follow=True))
    assert [(await anext(followed)).text for _ in range(2)] == ["of before", "mine"]
    await bus.store(stored[2][0], LogBatch(lines=(line("forged", "c1"),)), id="later")
    await bus.store(stored[1][0], LogBatch(lines=(line("forged", "c2"), line("more", "c1"))), id="last")
    assert (await anext(followed)).text == "more"
    await followed.aclose()
    assert faults.counts[NodeFault.NOT_BOUND] >= 6
