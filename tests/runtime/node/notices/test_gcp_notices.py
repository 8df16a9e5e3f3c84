"""Compute Engine's notices: a value that is waited for."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.gcp_notices import NOTICE_S, PATH, GcpNotices
from pilotlight_runtime.node.notices.notice_port import NoticesUnread
from tests.runtime.node.notices.metadata_server import ABSENT, Asked, Reply, metadata_server


def said(word: str, etag: str = "") -> Reply:
    headers = {"Metadata-Flavor": "Google"} | ({"ETag": etag} if etag else {})
    return Reply(text=word, headers=headers)


async def test_the_first_answer_comes_at_once_and_the_next_with_a_change() -> None:
    """It asks with the etag of the value that it knows."""
    replies = [said("FALSE", "abc1"), said("TRUE", "abc2")]
    async with metadata_server(lambda _: replies.pop(0)) as server:
        notices = GcpNotices(server.url, wait_s=60, wall=lambda: 1_000.0)
        assert await notices.poll() is None
        told = await notices.poll()
        await notices.aclose()

    assert told == NodeNotice(kind=NoticeKind.PREEMPT, deadline=1_000.0 + NOTICE_S, reason="Compute Engine preempts it")
    assert server.paths == [PATH, f"{PATH}?wait_for_change=true&timeout_sec=60&last_etag=abc1"]
    assert all(each.headers["metadata-flavor"] == "Google" for each in server.asked)


async def test_a_wait_without_a_change_is_no_notice() -> None:
    """Its time is up, and the value is as before."""

    def answer(asked: Asked) -> Reply:
        return said("FALSE", "same")

    async with metadata_server(answer) as server:
        notices = GcpNotices(server.url)
        assert [await notices.poll() for _ in range(3)] == [None, None, None]
        await notices.aclose()


@pytest.mark.parametrize(
    "reply", [said("MAYBE"), said(""), Reply(text="TRUE"), ABSENT, Reply(text="TRUE", headers={"Metadata-Flavor": "x"})]
)
async def test_what_is_not_compute_engines_is_no_notice(reply: Reply) -> None:
    """Nobody else drains a node by answering at that address."""
    async with metadata_server(lambda _: reply) as server:
        notices = GcpNotices(server.url)
        with pytest.raises(NoticesUnread):
            await notices.poll()
        await notices.aclose()


async def test_after_a_failure_it_does_not_wait_for_a_change() -> None:
    """The change may have been in the answer that was lost."""
    replies = [said("FALSE", "abc1"), ABSENT, said("TRUE", "abc2")]
    async with metadata_server(lambda _: replies.pop(0)) as server:
        notices = GcpNotices(server.url)
        await notices.poll()
        with pytest.raises(NoticesUnread):
            await notices.poll()
        assert await notices.poll() is not None
        await notices.aclose()

    assert server.paths[2] == PATH
