"""The tensors of a plan: all its tokens as one row, and what attention needs to keep the sequences apart."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
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
    """Where their keys and values go, head by head, if all rows are taken for one list of vectors."""
    row_positions: torch.Tensor | None = None
    row_length: int = 0
    masks: dict[int | None, torch.Tensor] = field(default_factory=dict)
    """Of rows, by sliding window: made by the first layer that has it."""
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
        """What each row attends to, as numbers to add: `[rows, 1, 1, length]`."""
        mask = self.masks.get(window)
        if mask is None:
            assert self.row_positions is not None  # noqa: S101 - only called where there are rows
            at, here = torch.arange(self.row_length, device=self.ids.device), self.row_positions[:, None]
            hidden = at > here
            if window is not None:
                hidden |= at <= here - window
            dtype = torch.float32 if self.pool is None else self.pool.keys[0].dtype
            mask = torch.zeros(hidden.shape, dtype=dtype, device=hidden.device)
            mask = self.masks[window] = mask.masked_fill_(hidden, float("-inf"))[:, None, None]
        return mask


def batch_of(plan: StepPlan, pool: KvPool, rows: DecodeRows, page: int, device: torch.device) -> StepBatch:
    """The batch of a plan."""
    with_row, without = rows.arrange(plan.decodes, pool, page)
    order = (*plan.prefills, *without, *with_row)
    parts: list[PromptPart] = []
    ids: list[int] = []
    positions: list[int] = []
    stored: list[int] = []
    for span in order:
        sequence = span.sequence
        if len(parts) < len(order) - len(with_row):
            whole = span.start == 0
            slots = None if whole else slots_of(sequence, span.end, page).to(device)
            last = len(ids) + span.end - span.start
            parts.append(
                PromptPart(first=len(ids), last=last, start=span.start, end=span.end, slots=slots, draws=span.draws)
            )
        ids += sequence.tokens[span.start : span.end]
        positions += range(span.start, span.end)
        stored += _slots_between(sequence, span.start, span.end, page)
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
        heads = torch.arange(len(with_row) * 2 * rows.kv_heads, device=device).view(-1, 2 * rows.kv_heads)
        batch.row_slots = (heads * rows.length + batch.row_positions[:, None]).view(-1)
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


def _slots_between(sequence: TokenSequence, start: int, end: int, page: int) -> list[int]:
    if end - start == 1:
        return [sequence.blocks[start // page] * page + start % page]
    blocks = sequence.blocks
    return [blocks[at // page] * page + at % page for at in range(start, end)]
