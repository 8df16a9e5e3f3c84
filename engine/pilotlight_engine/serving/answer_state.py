"""What another container needs to go on with an answer: the tokens so far, and the chunk that comes next.

A container that goes on has to yield what the first one would have. Tokens come again, by their seed and position; but
how many of them share a chunk depends on when they were ready. So a chunk has one token, unless a state that was saved
right before it has the whole chunk in it. Chunks of one token need no state of their own: one is saved every EVERY of
them. Whoever goes on yields EVERY chunks of one token first, since so many may have been sent behind its state.
"""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

EVERY = 32
"""Chunks of one token between two states."""
MOST_TOKENS = 48 * 1024
"""Of an answer whose states are saved: with more they are too large for a message."""


class AnswerState(msgspec.Struct, kw_only=True, array_like=True):
    """Saved as msgpack."""

    seed: int
    at: float
    """When the call began, in unix seconds."""
    tokens: bytes = b""
    """Those of the chunks that were yielded, as 32 bit numbers."""
    single_until: int = 0
    """Up to so many tokens, a chunk has one."""
    chunk: dict[str, Any] | None = None
    """The one that comes next, with its tokens."""
    has_ended: bool = False
    """Nothing comes behind that chunk."""

    @property
    def is_saved(self) -> bool:
        """Whether it is of an answer that was begun elsewhere: no state is saved without a token or a chunk."""
        return bool(self.tokens) or self.chunk is not None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Those of the chunks that were yielded."""
        numbers = array("I")
        numbers.frombytes(self.tokens)
        return tuple(numbers)


def packed(tokens: list[int]) -> bytes:
    """Tokens as a state has them."""
    return array("I", tokens).tobytes()


encode_state = msgspec.msgpack.Encoder().encode
decode_state = msgspec.msgpack.Decoder(AnswerState).decode
