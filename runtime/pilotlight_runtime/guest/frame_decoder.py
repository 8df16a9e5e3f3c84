"""Cutting a byte stream into frames. Both ends use it: memory is reused, and many frames are read at once."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_runtime.guest.frames import HEADER, MAX_FRAME, MalformedFrame, decoder_of

SMALL = 64 * 1024
"""Bytes kept between frames; larger frames borrow memory and give it back."""
LEAST_TAIL = 8 * 1024
"""With less space than this behind the last byte, what is left is moved to the front."""
GROWTH = 16
"""A frame gets at most this many times the memory that has been filled, so that a lying header costs nothing."""


class FrameDecoder:
    """Bytes are put into `space()`, and `filled(count)` gives the frames that they complete."""

    def __init__(self, family: Any, *, limit: int = MAX_FRAME) -> None:
        self._decode = decoder_of(family).decode
        self.limit = limit
        """Bytes of the largest frame."""
        self._memory = bytearray(SMALL)
        self._view = memoryview(self._memory)
        self._start = 0
        self._end = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        return self._view[self._end :]

    def filled(self, count: int) -> list[Any]:
        """The frames that are whole now that `count` more bytes are there, in order.

        Raises:
            MalformedFrame: and nothing that follows can be understood.
        """
        self._end += count
        frames: list[Any] = []
        wanted = 0
        while self._end - self._start >= HEADER.size:
            (length,) = HEADER.unpack_from(self._memory, self._start)
            if length > self.limit:
                raise MalformedFrame(f"a frame of {length} bytes is announced, {self.limit} is the most")
            begin = self._start + HEADER.size
            if self._end < begin + length:
                wanted = HEADER.size + length
                break
            frames.append(self._frame(self._view[begin : begin + length]))
            self._start = begin + length
        self._make_space(wanted)
        return frames

    def _frame(self, payload: memoryview) -> Any:
        try:
            return self._decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"a frame of {len(payload)} bytes cannot be read: {error}") from error

    def _make_space(self, wanted: int) -> None:
        held = self._end - self._start
        size = max(SMALL, min(wanted, GROWTH * (held + SMALL)))
        if size > len(self._memory) or (not held and len(self._memory) > SMALL):
            fresh = bytearray(size)
            fresh[:held] = self._view[self._start : self._end]
            self._memory, self._view = fresh, memoryview(fresh)
        elif self._start and (not held or len(self._memory) - self._end < LEAST_TAIL):
            self._view[:held] = self._view[self._start : self._end]
        elif self._end < len(self._memory):
            return
        self._start, self._end = 0, held
