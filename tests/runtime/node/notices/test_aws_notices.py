"""EC2's notices: a token, and what each question says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.aws_notices import ACTION, GROUP_S, LIFECYCLE, REBALANCE, TOKEN_PATH, AwsNotices
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from tests.runtime.node.notices.metadata_server import ABSENT, Asked, MetadataServer, Reply, metadata_server

NOW = 1_764_145_200.0
"""2025-11-26T08:20:00Z"""


class Imds:
    """The service: tokens are numbered, and what is `said` at a path."""

    def __init__(self, **said: str) -> None:
        self.said = said
        self.tokens = 0
        self.valid = ""

    def __call__(self, asked: Asked) -> Reply:
        if asked.path == TOKEN_PATH:
            if asked.method != "PUT" or not 1 <= int(asked.headers["x-aws-ec2-metadata-token-ttl-seconds"]) <= 21_600:
                return Reply(status=400)
            self.tokens += 1
            self.valid = f"token-{self.tokens}"
            return Reply(text=self.valid)
        if asked.headers.get("x-aws-ec2-metadata-token") != self.valid:
            return Reply(status=401)
        names = {ACTION: "action", LIFECYCLE: "lifecycle", REBALANCE: "rebalance"}
        text = self.said.get(names.get(asked.path, ""))
        return ABSENT if text is None else Reply(text=text)


@asynccontextmanager
async def source(
    answer: Callable[[Asked], Reply], clock: Callable[[], float] = lambda: 0.0
) -> AsyncIterator[tuple[AwsNotices, MetadataServer]]:
    async with metadata_server(answer) as server:
        made = AwsNotices(server.url, wall=lambda: NOW, clock=clock)
        try:
            yield made, server
        finally:
            await made.aclose()


async def test_nothing_is_said_of_most_machines() -> None:
    """404 three times, with one token for all questions."""
    imds = Imds()
    async with source(imds) as (notices, server):
        assert await notices.poll() is None
        assert await notices.poll() is None

    assert imds.tokens == 1
    assert server.paths == [TOKEN_PATH, *[ACTION, LIFECYCLE, REBALANCE] * 2]


async def test_a_spot_machine_is_reclaimed_at_its_time() -> None:
    """The time of the notice is the deadline."""
    said = '{"action": "terminate", "time": "2025-11-26T08:22:00Z"}'
    async with source(Imds(action=said, rebalance='{"noticeTime": "2025-11-26T08:19:00Z"}')) as (notices, _):
        told = await notices.poll()

    assert told == NodeNotice(kind=NoticeKind.PREEMPT, deadline=NOW + 120, reason="EC2 reclaims it: terminate")


async def test_a_clock_that_is_behind_gives_no_more_time() -> None:
    """Two minutes are what EC2 says before: who waited for the time by its own clock would be cut off."""
    async with source(Imds(action='{"action": "terminate", "time": "2025-11-26T09:22:00Z"}')) as (notices, _):
        told = await notices.poll()

    assert told is not None
    assert told.deadline == NOW + 120


async def test_hibernation_begins_at_once() -> None:
    """Whatever the time says."""
    async with source(Imds(action='{"action": "hibernate", "time": "2025-11-26T08:22:00Z"}')) as (notices, _):
        told = await notices.poll()

    assert told is not None
    assert told.deadline == NOW


@pytest.mark.parametrize(("state", "ends"), [("Terminated", True), ("InService", False), ("Warmed:Stopped", False)])
async def test_a_group_takes_its_machine_down(state: str, ends: bool) -> None:
    """Its word has no deadline."""
    async with source(Imds(lifecycle=state)) as (notices, _):
        told = await notices.poll()

    assert (told is not None) is ends
    assert told is None or (told.kind, told.deadline) == (NoticeKind.PREEMPT, NOW + GROUP_S)


async def test_a_recommendation_has_no_deadline() -> None:
    """It ends nothing yet."""
    async with source(Imds(rebalance='{"noticeTime": "2025-11-26T08:19:00Z"}')) as (notices, _):
        told = await notices.poll()

    assert told is not None
    assert (told.kind, told.deadline) == (NoticeKind.REBALANCE, 0.0)


async def test_a_token_is_renewed_before_its_end_and_when_it_is_refused() -> None:
    """A machine that was asleep has tokens that ended meanwhile."""
    imds, now = Imds(), [0.0]
    async with source(imds, lambda: now[0]) as (notices, _):
        await notices.poll()
        now[0] = 21_600.0 - 100.0
        await notices.poll()
        assert imds.tokens == 2
        imds.valid = "another"
        await notices.poll()

    assert imds.tokens == 3


@pytest.mark.parametrize(
    "imds",
    [
        Imds(action="<html>"),
        Imds(action="[1]"),
        Imds(action="[" * 10_000),
        Imds(action='{"action": "dance", "time": "2025-11-26T08:22:00Z"}'),
        Imds(action='{"action": "terminate"}'),
        Imds(action='{"action": "terminate", "time": "9999-12-31T23:59:59Z"}'),
        Imds(rebalance="soon"),
    ],
)
async def test_garbage_is_no_notice(imds: Imds) -> None:
    """Nothing is drained for what cannot be read."""
    async with source(imds) as (notices, _):
        with pytest.raises(NoticesUnread):
            await notices.poll()


@pytest.mark.parametrize("token", ["", "a" * 2_000, "a\x00b"])
async def test_a_token_that_is_none_is_not_used(token: str) -> None:
    """It would be sent back in a header."""
    async with source(lambda _: Reply(text=token)) as (notices, _):
        with pytest.raises(NoticesUnread, match="no token"):
            await notices.poll()


async def test_a_service_that_refuses_is_said() -> None:
    """IMDSv2 may be switched off."""
    async with source(lambda asked: Reply(text="t") if asked.method == "PUT" else Reply(status=403)) as (notices, _):
        with pytest.raises(NoticesUnread, match="403"):
            await notices.poll()
