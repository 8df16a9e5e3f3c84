"""Notices in a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.file_notices import MOST_BYTES, FileNotices
from pilotlight_runtime.node.notices.notice_port import NoticesUnread


async def test_a_file_says_when_and_why(tmp_path: Path) -> None:
    """And one that is not there, or empty, says nothing."""
    path = tmp_path / "notice"
    notices = FileNotices(path)
    assert await notices.poll() is None
    path.write_text('{"deadline": 1764147720, "reason": "a drill"}')
    assert await notices.poll() == NodeNotice(kind=NoticeKind.PREEMPT, deadline=1_764_147_720.0, reason="a drill")
    path.write_text('{"kind": "rebalance"}')
    told = await notices.poll()
    assert told is not None
    assert (told.kind, told.deadline) == (NoticeKind.REBALANCE, 0.0)
    path.write_text("\n")
    assert await notices.poll() is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"deadline": "soon"}', "deadline"),
        ('{"reason": "without a deadline"}', "expected unix seconds"),
        ('{"deadline": -1}', "expected unix seconds"),
        ('{"deadline": 1e300}', "expected unix seconds"),
        ('{"dedline": 1764147720}', "dedline"),
        ('{"deadline": 1764', "truncated"),
        ("x" * (MOST_BYTES + 1), "more than"),
    ],
)
async def test_a_file_that_is_wrong_says_what_was_expected(tmp_path: Path, text: str, why: str) -> None:
    """Nothing is drained for it."""
    path = tmp_path / "notice"
    path.write_text(text)
    with pytest.raises(NoticesUnread, match=why):
        await FileNotices(path).poll()


async def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Its writer may never come."""
    os.mkfifo(tmp_path / "notice")
    with pytest.raises(NoticesUnread, match="no plain file"):
        await FileNotices(tmp_path / "notice").poll()
