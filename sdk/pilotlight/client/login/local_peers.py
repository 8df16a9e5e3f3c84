"""Whose program is at the other end of a connection over loopback, by what Linux tells of its sockets."""

from __future__ import annotations

import os
from pathlib import Path

SOCKETS = Path("/proc/net/tcp")
LOOPBACK = "0100007F"
"""127.0.0.1 as that file has it, where the least byte comes first; elsewhere it is not found, and nobody is known."""
UID = 7


def peer_user(port: int, own_port: int, sockets: str) -> int | None:
    """Return the user of the program at `port` that is connected to `own_port`; None: nobody knows.

    Args:
        sockets: the text of /proc/net/tcp.
    """
    pair = [f"{LOOPBACK}:{port:04X}", f"{LOOPBACK}:{own_port:04X}"]
    for line in sockets.splitlines()[1:]:
        words = line.split()
        if words[1:3] == pair and len(words) > UID:
            return int(words[UID])
    return None


def is_own(port: int, own_port: int) -> bool:
    """Return whether a connection of loopback is of this process's user, or of root; True where nobody knows."""
    try:
        sockets = SOCKETS.read_text()
    except OSError:  # not Linux
        return True
    return peer_user(port, own_port, sockets) in (None, 0, os.geteuid())
