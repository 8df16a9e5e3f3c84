"""Keys and values of decoding sequences once more, each in a row of one padded tensor.

Blocks are right for sharing and for room; but to gather them anew for every token costs more than attention itself. A
sequence gets a row at its first decode, its token of each step is appended there too, and a step attends over a plain
view of all rows. Rows stay dense: the last one moves into a gap. What a row holds beyond its length is masked.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import torch

from pilotlight_engine.scheduling.token_sequence import StepSpan, TokenSequence
from pilotlight_engine.transformer.kv_pool import KvPool

GRAIN = 64
"""Lengths grow by at least as many tokens."""
FEW_TOKENS = 1024
"""Up to this length any sequence has a row, whatever the others' lengths."""
MUCH_LONGER = 4
"""As many times the mean length is too long for a row: every other row would be padded to it."""


@dataclass(kw_only=True, slots=True, eq=False)
class _Row:
    sequence: TokenSequence
    length: int
    """How many tokens it holds: it is of use only to the step that computes the next one."""


class DecodeRows:
    """Rows for sequences of up to `max_tokens` together, padding included."""

    def __init__(
        self, *, layers: int, max_tokens: int, kv_heads: int, head_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.max_tokens = max_tokens
        self.kv_heads, self._size = kv_heads, head_size
        self._dtype, self._device = dtype, device
        self._rows: list[_Row] = []
        self._place: dict[TokenSequence, int] = {}
        self.length = 0
        """How many tokens a row has room for."""
        self._count = 0
        self._layers = layers
        self._hold([self._empty(0, 0) for _ in range(layers)])

    def arrange(self, spans: Seq[StepSpan], pool: KvPool, page: int) -> tuple[list[StepSpan], list[StepSpan]]:
        """Give a row to each decode of a step that has room for one. Returns those with a row, in the order of rows,
        and the others.
        """
        longest = max(FEW_TOKENS, MUCH_LONGER * sum(span.end for span in spans) // max(1, len(spans)))
        wanted = {span.sequence: span for span in spans if span.end <= longest}
        without = [span for span in spans if span.end > longest]
        for place in range(len(self._rows) - 1, -1, -1):
            span = wanted.get(self._rows[place].sequence)
            if span is None or self._rows[place].length != span.start:
                self._remove(place)
        new = [span for span in wanted.values() if span.sequence not in self._place]
        new.sort(key=lambda span: span.end)
        if new:  # once for all, if there is room for all
            self._grow(len(self._rows) + len(new), new[-1].end)
        without += [span for span in new if not self._add(span, pool, page)]
        if self._rows and not self._grow(len(self._rows), max(row.length for row in self._rows) + 1):
            return self._without_longest(wanted, without)
        for row in self._rows:
            row.length += 1
        return [wanted[row.sequence] for row in self._rows], without

    def clear(self, sequence: TokenSequence) -> None:
        """What a row holds is no number: nobody who gets it later may read any of that."""
        place = self._place.get(sequence)
        if place is not None:
            for tensor in self.both:
                tensor[:, place].zero_()

    def drop_all(self) -> None:
        """Give all memory back."""
        self._rows, self._place = [], {}
        self.length = self._count = 0
        self._hold([self._empty(0, 0) for _ in range(self._layers)])

    def _hold(self, both: list[torch.Tensor]) -> None:
        """Have these tensors, one a layer, `[2, rows, kv_heads, length, size]`: first all keys, then all values."""
        self.both = both
        self.keys, self.values = [each[0] for each in both], [each[1] for each in both]
        _, count, kv_heads, length, _ = both[0].shape
        numbers = torch.arange(2 * count * kv_heads, device=self._device).view(2, count, kv_heads)
        self.starts = numbers.transpose(0, 1).reshape(count, 2 * kv_heads) * length
        """Where each head's keys of a row begin, and then its values, if a layer is taken for one list of vectors."""

    def _without_longest(
        self, wanted: dict[TokenSequence, StepSpan], without: list[StepSpan]
    ) -> tuple[list[StepSpan], list[StepSpan]]:
        """A row cannot grow: it goes, and its sequence is read from its blocks."""
        while self._rows and max(row.length for row in self._rows) >= self.length:
            place = max(range(len(self._rows)), key=lambda place: self._rows[place].length)
            without.append(wanted[self._rows[place].sequence])
            self._remove(place)
        for row in self._rows:
            row.length += 1
        return [wanted[row.sequence] for row in self._rows], without

    def _add(self, span: StepSpan, pool: KvPool, page: int) -> bool:
        if not self._grow(len(self._rows) + 1, span.end):
            return False
        place = len(self._rows)
        slots = slots_of(span.sequence, span.start, page).to(self._device)
        for layer, (keys, values) in enumerate(zip(self.keys, self.values, strict=True)):
            stored_keys, stored_values = pool.read(layer, slots)
            keys[place, :, : span.start] = stored_keys
            values[place, :, : span.start] = stored_values
        self._rows.append(_Row(sequence=span.sequence, length=span.start))
        self._place[span.sequence] = place
        return True

    def _remove(self, place: int) -> None:
        last = len(self._rows) - 1
        del self._place[self._rows[place].sequence]
        if place != last:
            row = self._rows[last]
            for tensor in self.both:
                tensor[:, place, :, : row.length] = tensor[:, last, :, : row.length]
            self._rows[place] = row
            self._place[row.sequence] = place
        self._rows.pop()

    def _grow(self, count: int, length: int) -> bool:
        """Have room for `count` rows of `length`; false if that is too much."""
        if count <= self._count and length <= self.length:
            return True
        new_count = self._count if count <= self._count else max(count, min(2 * self._count, 2 * count))
        new_length = self.length if length <= self.length else -(-max(length, self.length * 5 // 4) // GRAIN) * GRAIN
        if new_count * new_length > self.max_tokens:
            new_count, new_length = max(count, self._count), -(-max(length, self.length) // GRAIN) * GRAIN
        if new_count * new_length > self.max_tokens:
            return False
        held = len(self._rows)
        grown = []
        for layer, tensor in enumerate(self.both):
            larger = self._empty(new_count, new_length)
            larger[:, :held, :, : self.length] = tensor[:, :held]
            grown.append(larger)
            self.both[layer] = self.keys[layer] = self.values[layer] = self._empty(0, 0)  # its room is free at once
        self._hold(grown)
        self._count, self.length = new_count, new_length
        return True

    def _empty(self, count: int, length: int) -> torch.Tensor:
        return torch.zeros((2, count, self.kv_heads, length, self._size), dtype=self._dtype, device=self._device)


def slots_of(sequence: TokenSequence, end: int, page: int) -> torch.Tensor:
    """The rows of the pool that hold the first `end` tokens of a sequence."""
    blocks = torch.tensor(sequence.blocks[: -(-end // page)], dtype=torch.long)
    return (blocks[:, None] * page + torch.arange(page)).view(-1)[:end]
