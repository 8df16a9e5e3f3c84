"""The text of tokens as they come, which never ends inside a character.

A token's text depends on its neighbours: some stand for a part of a character, some for a word whose space is left out
at the beginning. So tokens are decoded in a window: from those whose text was given last, to see what they look like,
through those whose text is not given yet. What a window ends in U+FFFD may be half a character, and waits.
"""

from __future__ import annotations

from pilotlight_engine.text.text_tokenizer import TextTokenizer

HALF = "\ufffd"
LONGEST_WAIT = 12
"""Tokens that may wait for the rest of a character, of which none has more than four bytes: then they are none. Of
tokens without a text as many are kept: each token is decoded with all that are."""


class Detokenizer:
    """The text of one answer: the same tokens give the same texts, one by one."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._window: list[int] = []
        self._given = 0
        """How many of the window's tokens have been given."""
        self._given_text = ""
        """Their text, as it is at the beginning of the window."""

    def add(self, token: int) -> str:
        """The text that is certain with one token more; "": none yet."""
        self._window.append(token)
        text = self._tokenizer.decode(self._window)
        if text.endswith(HALF) and len(self._window) - self._given < LONGEST_WAIT:
            return ""
        return self._give(text)

    def flush(self) -> str:
        """What waits, at the end of the answer: half a character is U+FFFD."""
        if len(self._window) == self._given:
            return ""
        return self._give(self._tokenizer.decode(self._window))

    def _give(self, text: str) -> str:
        fresh = text[len(self._given_text) :]
        if not fresh:
            if len(self._window) - self._given >= LONGEST_WAIT:  # special ones, say: they have no text to come either
                del self._window[self._given :]
            return ""
        self._window = self._window[self._given :]
        self._given = len(self._window)
        self._given_text = self._tokenizer.decode(self._window)
        return fresh
