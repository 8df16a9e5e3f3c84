"""Whether a stream's snapshot is whole, by the frames of the S2 compression in which nats-server sends it.

Each frame begins with its kind, one byte, and its length, three. Where a part is missing the next header is any bytes,
and the last frame does not end where the snapshot does. If the missing part is the last one and began where a frame
does, all frames are whole: then the archive that is in them lacks its end, which is zeros.
"""

from __future__ import annotations

from pilotlight_gateway.backups.s2_blocks import COMPRESSED, PLAIN, BadBlock, content_of

IDENTIFIER = b"\xff\x06\x00\x00S2sTwO"
HEADER_BYTES = 4
RESERVED = range(0x02, 0x80)
"""Kinds that no reader may skip, and no writer makes."""
ARCHIVE, TAR, TAR_AT = b"NATSARC1", b"ustar", 257
"""How the archive of nats-server 2.15 begins, and what is where in that of servers before."""
END = bytes(5)
"""Of either: an entry without name, time, mode and size; or a block that has no header."""


class SnapshotFrames:
    """Follows a snapshot as it comes; one that is not of S2 is not judged, nor is the end of an unknown archive."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0
        """Bytes until the next header."""
        self._judges: bool | None = None
        self._broken = False
        self._kind = PLAIN
        self._body = bytearray()
        """Of the last frame with content, as far as it has come."""
        self._first: tuple[int, bytes] | None = None
        """The first one with content."""
        self._takes = False
        """Whether the present frame has content."""

    def follow(self, data: bytes) -> None:
        """The next bytes of it."""
        if self._judges is None:
            self._judges = data.startswith(IDENTIFIER)
        position = 0
        while self._judges and not self._broken and position < len(data):
            if self._left:
                taken = min(self._left, len(data) - position)
                self._left -= taken
                if self._takes:
                    self._body += data[position : position + taken]
            else:
                taken = HEADER_BYTES - len(self._header)
                self._header += data[position : position + taken]
                if len(self._header) == HEADER_BYTES:
                    self._begin(self._header[0], int.from_bytes(self._header[1:], "little"))
                    self._header.clear()
            position += taken

    def _begin(self, kind: int, size: int) -> None:
        self._broken, self._left = kind in RESERVED, size
        self._takes = kind in (COMPRESSED, PLAIN)
        if self._takes:
            if self._body and self._first is None:
                self._first = self._kind, bytes(self._body)
            self._kind = kind
            self._body.clear()

    @property
    def is_whole(self) -> bool:
        """It ends where a frame does, and the archive in it with its end."""
        if not self._judges:
            return True
        return not (self._broken or self._left or self._header) and self._has_end()

    def _has_end(self) -> bool:
        """Whether the archive in the frames ends, if it is one that is known."""
        if not self._body:
            return False
        last = self._kind, bytes(self._body)
        try:
            begins, ends = content_of(*(self._first or last)), content_of(*last)
        except BadBlock:
            return True  # of another writer: the server that reads it judges
        is_known = begins.startswith(ARCHIVE) or begins[TAR_AT:].startswith(TAR)
        return not is_known or ends.endswith(END[: len(ends)])
