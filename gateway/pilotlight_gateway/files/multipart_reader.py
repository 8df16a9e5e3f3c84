"""Reads multipart/form-data (RFC 7578) as it arrives, within bounds. Pure.

It finds parts at their delimiter, which begins with a line break: one that stands anywhere else is content. Whatever
comes in, it keeps no more than a head and a delimiter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pilotlight_core.model.errors import BadInput

HEAD_BYTES = 8 * 1024
MOST_PARTS = 32
PREAMBLE_BYTES = 1024
BOUNDARY = re.compile(rb'boundary=(?:"([^"\r\n]{1,70})"|([A-Za-z0-9\'()+_,./:=?-]{1,70}))(?:$|[;\s])', re.IGNORECASE)
PARAMETER = re.compile(rb';\s*(name|filename)="((?:[^"\\\r\n]|\\.)*)"', re.IGNORECASE)
ESCAPED = re.compile(rb'\\(["\\])')
END = b"--"
LINE = b"\r\n"


class PartBegins(NamedTuple):
    """A field, or a file if it has a name of one."""

    name: str
    file_name: str | None


class PartContent(NamedTuple):
    data: bytes


class PartEnds(NamedTuple):
    """The part is whole."""


PartEvent = PartBegins | PartContent | PartEnds


def boundary_of(content_type: bytes) -> bytes:
    """The boundary that a Content-Type names.

    Raises:
        BadInput: `unsupported_media_type`: it is no form, or names none.
    """
    media, _, parameters = content_type.partition(b";")
    found = BOUNDARY.search(parameters[:256])
    if media.strip().lower() != b"multipart/form-data" or found is None:
        raise BadInput("This takes multipart/form-data, with a boundary.", code="unsupported_media_type")
    return found[1] or found[2]


class MultipartReader:
    """Turns bytes into parts."""

    def __init__(self, boundary: bytes) -> None:
        self._delimiter = LINE + END + boundary
        self._rest = bytearray(LINE)  # the first delimiter may begin the body
        self._state: Callable[[list[PartEvent]], bool] = self._preamble
        self._parts = 0
        self.is_over = False
        """Whether the last delimiter was seen; what follows is thrown away."""

    def feed(self, piece: bytes) -> list[PartEvent]:
        """What `piece` completes.

        Raises:
            BadInput: `bad_request`: it is no form, or beyond the bounds.
        """
        events: list[PartEvent] = []
        if self.is_over:
            return events
        self._rest += piece
        while self._state(events):
            pass
        return events

    def _preamble(self, _events: list[PartEvent]) -> bool:
        if (at := self._rest.find(self._delimiter)) >= 0:
            del self._rest[: at + len(self._delimiter)]
            self._state = self._behind_delimiter
            return True
        if len(self._rest) > PREAMBLE_BYTES + len(self._delimiter):
            raise _bad("it does not begin with its boundary")
        return False

    def _behind_delimiter(self, _events: list[PartEvent]) -> bool:
        if len(self._rest) < len(END):
            return False
        if self._rest.startswith(END):
            self.is_over = True
            self._rest.clear()
            return False
        if not self._rest.startswith(LINE):
            raise _bad("behind a boundary no line ends")
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise _bad(f"it has more than {MOST_PARTS} parts")
        self._state = self._head  # whose first line break stays, so that one without headers ends with it
        return True

    def _head(self, events: list[PartEvent]) -> bool:
        at = self._rest.find(LINE + LINE)
        if at > HEAD_BYTES or (at < 0 and len(self._rest) > HEAD_BYTES):
            raise _bad(f"the head of a part is longer than {HEAD_BYTES} bytes")
        if at < 0:
            return False
        events.append(_begins(bytes(self._rest[:at])))
        del self._rest[: at + len(LINE)]  # the second line break may begin the delimiter of a part without content
        self._state = self._content_begin
        return True

    def _content_begin(self, _events: list[PartEvent]) -> bool:
        if len(self._rest) < len(self._delimiter):
            if self._delimiter.startswith(bytes(self._rest)):
                return False
            del self._rest[: len(LINE)]
        elif not self._rest.startswith(self._delimiter):
            del self._rest[: len(LINE)]
        self._state = self._content
        return True

    def _content(self, events: list[PartEvent]) -> bool:
        at = self._rest.find(self._delimiter)
        if at >= 0:
            if at:
                events.append(PartContent(bytes(self._rest[:at])))
            events.append(PartEnds())
            del self._rest[: at + len(self._delimiter)]
            self._state = self._behind_delimiter
            return True
        if (sure := len(self._rest) - len(self._delimiter) + 1) > 0:
            events.append(PartContent(bytes(self._rest[:sure])))
            del self._rest[:sure]
        return False


def _begins(head: bytes) -> PartBegins:
    for line in head.split(LINE):
        field, _, value = line.partition(b":")
        if field.strip().lower() != b"content-disposition":
            continue
        kind = value.partition(b";")[0].strip().lower()
        found = {match[1].lower(): ESCAPED.sub(rb"\1", match[2]) for match in PARAMETER.finditer(value)}
        if kind == b"form-data" and b"name" in found:
            file_name = found.get(b"filename")
            return PartBegins(
                found[b"name"].decode("utf-8", "replace"),
                file_name.decode("utf-8", "replace") if file_name is not None else None,
            )
    raise _bad("a part has no Content-Disposition with a name")


def _bad(why: str) -> BadInput:
    return BadInput(f"The body is no form: {why}.", code="bad_request", field="body")
