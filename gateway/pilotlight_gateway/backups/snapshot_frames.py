"""Whether a stream's snapshot is whole, by the frames of the S2 compression in which nats-server sends it.

Each frame begins with its kind, one byte, and its length, three. Where a part is missing the next header is any bytes,
and the last frame does not end where the snapshot does.
"""

from __future__ import annotations

IDENTIFIER = b"\xff\x06\x00\x00S2sTwO"
HEADER_BYTES = 4
RESERVED = range(0x02, 0x80)
"""Kinds that no reader may skip, and no writer makes."""


class SnapshotFrames:
    """Follows a snapshot as it comes; one that is not of S2 is not judged."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._left = 0
        """Bytes until the next header."""
        self._judges: bool | None = None
        self._broken = False

    def follow(self, data: bytes) -> None:
        """The next bytes of it."""
        if self._judges is None:
            self._judges = data.startswith(IDENTIFIER)
        position = 0
        while self._judges and not self._broken and position < len(data):
            if self._left:
                taken = min(self._left, len(data) - position)
                self._left -= taken
            else:
                taken = HEADER_BYTES - len(self._header)
                self._header += data[position : position + taken]
                if len(self._header) == HEADER_BYTES:
                    self._broken = self._header[0] in RESERVED
                    self._left = int.from_bytes(self._header[1:], "little")
                    self._header.clear()
            position += taken

    @property
    def is_whole(self) -> bool:
        """It ends where a frame does."""
        return not self._judges or not (self._broken or self._left or self._header)
