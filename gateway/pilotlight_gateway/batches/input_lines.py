"""The lines of a batch. All are read and checked before it starts.

    {"custom_id": "row-1", "input": {"name": "Ada"}}

The number of a line replaces a missing `custom_id`, which is unique in the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.records.batches import CUSTOM_ID_LENGTH, ITEMS_AT_MOST, BatchItem, ItemError
from pilotlight_core.model.values import MAX_DEPTH
from pilotlight_gateway.bodies.call_requests import json_depth_within, pack_arguments, wrong_shape

ERRORS_LISTED = 20
LINES_AT_MOST = 10 * ITEMS_AT_MOST
"""Empty ones included: they cost time too."""
LINE_BYTES = 10 * 10**6
"""As of the body of a single call."""

DecodeLine = Callable[[bytes], "InputLine"]
"""Raises BadInput and DecodeError."""
CheckInput = Callable[[dict[str, Any]], None]
"""Raises BadInput, naming the field, for wrong arguments."""


class InputLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a batch."""

    input: dict[str, Any] = {}
    custom_id: str | None = None


_decoder = msgspec.json.Decoder(InputLine)


class InputLineReader:
    """Turns bytes into items and collects errors. Not thread-safe."""

    def __init__(self, check: CheckInput, decode: DecodeLine | None = None) -> None:
        """`decode`: reads lines that are of another form."""
        self._check = check
        self._decode = decode or _decoder.decode
        self._rest = bytearray()
        """An unfinished line. A bytearray grows in place, however small the pieces are."""
        self._number = 0
        self._named: set[str] = set()
        self._custom_id: str | None = None
        """Of the current line."""
        self.items = 0
        self.errors: list[ItemError] = []
        self.wrong = 0

    def feed(self, piece: bytes) -> list[BatchItem]:
        """The items of the lines that `piece` completes.

        Raises:
            BadInput: too many lines or items, or one that is too long.
        """
        head, *others = piece.split(b"\n")
        self._rest += head
        items: list[BatchItem] = []
        if others:
            *whole, rest = bytes(self._rest), *others
            self._rest = bytearray(rest)
            items = self._read(whole)
        if len(self._rest) > LINE_BYTES:
            raise self._too_long()
        return items

    def finish(self) -> list[BatchItem]:
        """The item of a last line without a line end.

        Raises:
            BadInput: names the line and field of the batch's first error.
        """
        last, self._rest = bytes(self._rest), bytearray()
        items = self._read([last])
        if self.errors:
            raise self._refusal()
        if not self.items:
            raise BadInput("body: there is no line in it.", field="body")
        return items

    def _read(self, lines: list[bytes]) -> list[BatchItem]:
        found = []
        for line in lines:
            self._number += 1
            if not line.strip():
                if self._number > LINES_AT_MOST:
                    raise BadInput(f"body: more than {LINES_AT_MOST} lines.", code="too_large", limit=LINES_AT_MOST)
                continue
            try:
                item = self._item(line)
            except BadInput as error:
                self._note(error)
                continue
            finally:
                self.items += 1
                if self.items > ITEMS_AT_MOST:
                    raise BadInput(f"body: more than {ITEMS_AT_MOST} lines.", code="too_large", limit=ITEMS_AT_MOST)
            found.append(item)
        return found

    def _item(self, line: bytes) -> BatchItem:
        self._custom_id = None
        if len(line) > LINE_BYTES:
            raise BadInput(f"longer than {LINE_BYTES} bytes.", field="line")
        try:
            read, shallow = self._decode(line), json_depth_within(line)
        except msgspec.ValidationError as error:
            refused = wrong_shape(error)
            if refused.more["field"] == "body":
                refused = BadInput(refused.detail.removeprefix("body: "), field="line")
            raise refused from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadInput(f"it is not JSON: {error}.", field="line") from None
        except RecursionError:
            shallow = False
        if not shallow:
            raise BadInput(f"input: nested deeper than {MAX_DEPTH}.", field="input")
        self._custom_id = None if read.custom_id is None else read.custom_id[:CUSTOM_ID_LENGTH]
        name = self._name(read.custom_id)
        self._check(read.input)
        return BatchItem(self.items, name, pack_arguments(read.input))

    def _name(self, given: str | None) -> str:
        name = str(self._number) if given is None else given
        if not 1 <= len(name) <= CUSTOM_ID_LENGTH or not name.isprintable():
            raise BadInput(f"custom_id: expected 1 to {CUSTOM_ID_LENGTH} printable characters.", field="custom_id")
        if name in self._named:
            raise BadInput(f"custom_id: {name!r} stands on an earlier line.", field="custom_id")
        self._named.add(name)
        return name

    def _note(self, error: BadInput) -> None:
        self.wrong += 1
        if len(self.errors) < ERRORS_LISTED:
            field = str(error.more.get("field", "line"))
            item_error = ItemError(line=self._number, field=field, detail=error.detail, custom_id=self._custom_id)
            self.errors.append(item_error)

    def _refusal(self) -> BadInput:
        first = self.errors[0]
        others = f" {self.wrong - 1} other lines are wrong too." if self.wrong > 1 else ""
        return BadInput(
            f"line {first.line}: {first.detail}{others}",
            field=first.field, line=first.line, errors=[msgspec.to_builtins(error) for error in self.errors],
        )  # fmt: skip

    def _too_long(self) -> BadInput:
        return BadInput(
            f"line {self._number + 1}: longer than {LINE_BYTES} bytes.", code="too_large", line=self._number + 1
        )
