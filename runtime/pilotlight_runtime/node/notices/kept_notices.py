"""The notice that holds, on disk: an agent that is started anew before the deadline goes on where the last one was."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import structlog

from pilotlight_core.model.messages.node_messages import NodeNotice

MOST_BYTES = 64 * 1024

log = structlog.get_logger(__name__)


class KeptNotice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice, and how far its node is."""

    boot: str
    """Names the machine's boot: after another one the machine has been taken away, and is back."""
    notice: NodeNotice
    drained: bool = False
    """Whether an agent has emptied the node for it, and ended."""


class NoticeKeeper:
    """The file `path`. What cannot be written is said in the log: the notice holds all the same."""

    def __init__(self, path: Path, boot: str) -> None:
        self._path = path
        self._boot = boot

    def read(self) -> KeptNotice | None:
        """The notice of this boot; None: there is none, or none that can be read."""
        try:
            with self._path.open("rb") as file:
                kept = msgspec.json.decode(file.read(MOST_BYTES), type=KeptNotice)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            log.warning("the notice that was kept cannot be read", error=str(error))
            return None
        return kept if kept.boot == self._boot else None

    def write(self, notice: NodeNotice | None, *, drained: bool = False) -> None:
        """Keep the notice in the place of what is there; None: keep none."""
        try:
            if notice is None:
                self._path.unlink(missing_ok=True)
                return
            beside = self._path.with_suffix(".new")
            data = msgspec.json.encode(KeptNotice(boot=self._boot, notice=notice, drained=drained))
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self._path)
        except OSError as error:
            log.warning("a notice cannot be kept", error=str(error))
