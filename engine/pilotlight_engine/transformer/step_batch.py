"""The tensors of a plan: all its tokens as one row, and what attention needs to keep the sequences apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan
from pilotlight_engine.transformer.decode_rows import DecodeRows, slots_of
from pilotlight_engine.transformer.kv_pool import KvPool


@dataclass(frozen=True, kw_only=True, slots=True)
class PromptPart:
    """Tokens of one sequence that attend to all before them, and to themselves."""

    first: int
    """Where they are among the step's tokens."""
    last: int
    start: int
    """How many tokens of the sequence come before."""
    end: int
    slots: torch.Tensor | None
    """Where the tokens up to `end` are stored; None if there are none but these."""
    draws: bool = False
    """The next token is known after its last one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBags:
    """For each query of rows, head by head, the numbers of all values of its row, in their order."""

    places: torch.Tensor
    first: torch.Tensor
    """Where those of each query begin."""


@dataclass(kw_only=True, slots=True)
class StepBatch:
    """One forward pass. Parts of prompts come first, then decodes without a row, then those with one."""

    ids: torch.Tensor
    positions: torch.Tensor
    pool: KvPool | None
    """None stores nothing: each part is a whole sequence."""
    slots: torch.Tensor
    """Where the step's tokens are stored."""
    parts: tuple[PromptPart, ...]
    rows: DecodeRows | None = None
    rows_first: int = 0
    """Where the tokens of rows begin among the step's."""
    row_slots: torch.Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.long))
    """Where their keys and values go, head by head, if a layer of rows is taken for one list of vectors."""
    row_positions: torch.Tensor | None = None
    row_length: int = 0
    masks: dict[int | None, torch.Tensor] = field(default_factory=dict)
    """Of rows, by sliding window: made by the first layer that has it."""
    row_bags: RowBags | None = None
    """Made by the first layer that reads values in their order."""
    order: tuple[StepSpan, ...] = ()
    """The spans, in the order of their tokens."""
    longest: int = 0
    """The most tokens of a sequence of the step, up to its own."""

    def drawing(self) -> tuple[list[int], list[StepSpan]]:
        """The spans that draw, and where the last token of each is among the step's."""
        if not self.parts:  # only rows: each is one token, and its sequence's last
            return list(range(len(self.order))), list(self.order)
        places, spans, last = [], [], -1
        for span in self.order:
            last += span.end - span.start
            if span.draws:
                places.append(last)
                spans.append(span)
        return places, spans

    def row_mask(self, window: int | None) -> torch.Tensor:
        """What each row attends to, as numbers to add: `[rows * kv_heads, 1, length]`."""
        mask = self.masks.get(window)
        if mask is None:
            assert self.row_positions is not None  # noqa: S101 - only called where there are rows
            assert self.rows is not None  # noqa: S101
            at, here = torch.arange(self.row_length, device=self.ids.device), self.row_positions[:, None]
            hidden = at > here
            if window is not None:
                hidden |= at <= here - window
            mask = torch.zeros(hidden.shape, dtype=self.rows.keys[0].dtype, device=hidden.device)
            mask = mask.masked_fill_(hidden, float("-inf")).repeat_interleave(self.rows.kv_heads, 0)[:, None]
            self.masks[window] = mask
        return mask

    def bags(self, groups: int) -> RowBags:
        """Which values each query takes, where so many share a head of them."""
        if self.row_bags is None:
            assert self.rows is not None  # noqa: S101 - only called where there are rows
            count, kv_heads = self.row_slots.shape[0] // (2 * self.rows.kv_heads), self.rows.kv_heads
            first = self.rows.starts[:count, kv_heads:].reshape(-1, 1).repeat_interleave(groups, 0)
            places = (first + torch.arange(self.row_length)).view(-1)
            self.row_bags = RowBags(places=places, first=torch.arange(0, places.shape[0], self.row_length))
        return self.row_bags


def batch_of(plan: StepPlan, pool: KvPool, rows: DecodeRows, page: int, device: torch.device) -> StepBatch:
    """The batch of a plan."""
    with_row, without = rows.arrange(plan.decodes, pool, page)
    order = (*plan.prefills, *without, *with_row)
    parts: list[PromptPart] = []
    ids: list[int] = []
    positions: list[int] = []
    stored: list[int] = []
    for span in (*plan.prefills, *without):
        sequence, first = span.sequence, len(ids)
        slots = None if span.start == 0 else slots_of(sequence, span.end, page).to(device)
        ids += sequence.tokens[span.start : span.end]
        positions += range(span.start, span.end)
        stored += [sequence.blocks[at // page] * page + at % page for at in range(span.start, span.end)]
        parts.append(
            PromptPart(first=first, last=len(ids), start=span.start, end=span.end, slots=slots, draws=span.draws)
        )
    for sequence, at, _ in with_row:
        ids.append(sequence.tokens[at])
        positions.append(at)
        stored.append(sequence.blocks[at // page] * page + at % page)
    batch = StepBatch(
        ids=torch.tensor([ids], device=device),
        positions=torch.tensor([positions], device=device),
        pool=pool,
        slots=torch.tensor(stored, device=device),
        parts=tuple(parts),
        order=order,
        longest=max(span.end for span in order),
    )
    if with_row:
        batch.rows = rows
        batch.rows_first = len(ids) - len(with_row)
        batch.row_positions = batch.positions[0, batch.rows_first :]
        batch.row_slots = (rows.starts[: len(with_row)] + batch.row_positions[:, None]).reshape(-1)
        batch.row_length = max(span.end for span in with_row)
    return batch


def batch_of_whole(inputs: list[list[int]], device: torch.device) -> StepBatch:
    """A batch of whole sequences of which nothing is stored."""
    parts, first = [], 0
    for ids in inputs:
        parts.append(PromptPart(first=first, last=first + len(ids), start=0, end=len(ids), slots=None))
        first += len(ids)
    return StepBatch(
        ids=torch.tensor([[token for ids in inputs for token in ids]], device=device),
        positions=torch.tensor([[position for ids in inputs for position in range(len(ids))]], device=device),
        pool=None,
        slots=torch.empty(0, dtype=torch.long, device=device),
        parts=tuple(parts),
    )
