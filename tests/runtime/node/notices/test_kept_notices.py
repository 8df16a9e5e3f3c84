"""The notice on disk."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.kept_notices import KeptNotice, NoticeKeeper

NOTICE = NodeNotice(kind=NoticeKind.PREEMPT, deadline=100.0, reason="a drill")


def test_the_next_agent_of_the_same_boot_finds_it(tmp_path: Path) -> None:
    """After another boot the machine was taken away, and is back."""
    path = tmp_path / "notice.json"
    NoticeKeeper(path, "boot-1").write(NOTICE, drained=True)

    assert NoticeKeeper(path, "boot-1").read() == KeptNotice(boot="boot-1", notice=NOTICE, drained=True)
    assert NoticeKeeper(path, "boot-2").read() is None
    NoticeKeeper(path, "boot-2").write(None)
    assert not path.exists()


def test_a_file_that_cannot_be_read_or_written_stops_nobody(tmp_path: Path) -> None:
    """A full disk is no reason to stay, and half a file none to drain."""
    path = tmp_path / "notice.json"
    path.write_text('{"boot": "boot-1", "not')
    assert NoticeKeeper(path, "boot-1").read() is None
    NoticeKeeper(tmp_path / "none" / "notice.json", "boot-1").write(NOTICE)
    NoticeKeeper(path, "boot-1").write(NOTICE)
    assert NoticeKeeper(path, "boot-1").read() is not None
