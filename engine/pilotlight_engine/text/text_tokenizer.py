"""Text to tokens and back: by the tokenizer.json of a model's weights, or without a model by a rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

TOKENIZER_FILE = "tokenizer.json"
BYTES = 256
END = 256
"""The token that ends a simulated answer."""
CONSONANTS, VOWELS = (
    "bdfghjklmnprstvz",
    ("a", "e", "i", "o", "u", "ai", "au", "ei", "ia", "ie", "io", "oa", "oi", "ua", "ue", "ui"),
)


class TextTokenizer(Protocol):
    """What serving needs of a tokenizer."""

    vocabulary: int
    """Ids are below it."""

    def encode(self, text: str, *, special: bool) -> list[int]:
        """The tokens of a text; with `special`, those too that the model expects at its beginning."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens, without special ones. Half a character is U+FFFD."""

    def token_text(self, token: int) -> str:
        """One token as people read it, special ones too."""


class FileTokenizer:
    """The tokenizer of a model's weights, by the library `tokenizers`."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer: Any = Tokenizer.from_file(str(path))
        self.vocabulary: int = self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=special).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def token_text(self, token: int) -> str:
        text: str = self._tokenizer.decode([token], skip_special_tokens=False)
        return text


class SimTokenizer:
    """For engines without a model: what is read has a token for each byte, what is written a syllable for each."""

    vocabulary = BYTES + 1

    def encode(self, text: str, *, special: bool) -> list[int]:  # noqa: ARG002 - no text begins with a special one
        return list(text.encode("utf-8", "replace"))

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(map(self.token_text, ids))

    def token_text(self, token: int) -> str:
        if token >= BYTES:
            return ""
        return f"{' ' if token % 3 == 0 else ''}{CONSONANTS[token // 16]}{VOWELS[token % 16]}"


def tokenizer_of(folder: Path | None) -> TextTokenizer:
    """The tokenizer of a folder of weights; a simulated one, if there is no folder.

    Raises:
        ValueError: it has none, or one that cannot be read.
    """
    if folder is None:
        return SimTokenizer()
    path = folder / TOKENIZER_FILE
    if not path.is_file():
        raise ValueError(
            f"the weights {folder.name} have no {TOKENIZER_FILE}: save the tokenizer beside the model "
            "(tokenizer.save_pretrained(FOLDER)) and push them again"
        )
    try:
        return FileTokenizer(path)
    except ImportError as error:
        raise ValueError(f"the base environment lacks the package 'tokenizers', which reads {path.name}") from error
    except Exception as error:  # the library raises plain Exception
        raise ValueError(f"{path.name} of the weights {folder.name} cannot be read: {error}") from error
