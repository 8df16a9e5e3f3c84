"""Notices in a file, for operators' own scripts and for tests.

    {"deadline": 1764147720, "reason": "the rack is switched off"}
    {"kind": "rebalance", "reason": "its zone is short of machines"}

No file, or an empty one, is no notice; one that is removed again has been withdrawn. Write it under another name and
rename it: half a file is none.
"""

from __future__ import annotations

import asyncio
import math
import stat
from pathlib import Path

import msgspec

from pilotlight_core.model.messages.node_messages import NodeNotice, NoticeKind
from pilotlight_runtime.node.notices.notice_port import NoticesUnread

MOST_BYTES = 64 * 1024
MOST_REASON = 500
"""Characters."""
LATEST = 1e12


class NoticeFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says."""

    deadline_at: float = msgspec.field(default=0.0, name="deadline")
    """Unix seconds."""
    reason: str = ""
    kind: NoticeKind = NoticeKind.PREEMPT


class FileNotices:
    """A `NoticeSource`."""

    pause_s = 0.25
    revokes = True

    def __init__(self, path: Path) -> None:
        self._path = path

    async def poll(self) -> NodeNotice | None:
        text = await asyncio.to_thread(self._read)
        if not text.strip():
            return None
        try:
            told = msgspec.json.decode(text, type=NoticeFile)
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoticesUnread(f"{self._path}: {error}") from None
        if told.kind is NoticeKind.PREEMPT and not (math.isfinite(told.deadline_at) and 0 < told.deadline_at < LATEST):
            raise NoticesUnread(f"{self._path}: deadline: expected unix seconds, got {told.deadline_at}")
        reason = told.reason[:MOST_REASON] or "a notice in its file"
        deadline = told.deadline_at if told.kind is NoticeKind.PREEMPT else 0.0
        return NodeNotice(kind=told.kind, deadline=deadline, reason=reason)

    async def aclose(self) -> None:
        pass

    def _read(self) -> bytes:
        try:
            if not stat.S_ISREG(self._path.stat().st_mode):  # a pipe would block
                raise NoticesUnread(f"{self._path} is no plain file")
            with self._path.open("rb") as file:
                text = file.read(MOST_BYTES + 1)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise NoticesUnread(str(error)) from None
        if len(text) > MOST_BYTES:
            raise NoticesUnread(f"{self._path} has more than {MOST_BYTES} bytes")
        return text
