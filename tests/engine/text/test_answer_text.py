"""Tokens to pieces of an answer."""

from __future__ import annotations

from pilotlight_engine.text.answer_text import AnswerText
from pilotlight_engine.text.text_tokenizer import TextTokenizer


class Letters(TextTokenizer):
    """A token is a character."""

    vocabulary = 0x110000

    def encode(self, text: str, *, special: bool) -> list[int]:
        return list(map(ord, text))

    def decode(self, ids: object) -> str:
        return "".join(map(chr, ids))  # type: ignore[call-overload]

    def token_text(self, token: int) -> str:
        return chr(token)


def said(answer: AnswerText, text: str) -> str:
    return "".join(answer.add(ord(one)).text for one in text) + answer.flush().text


def test_text_ends_before_its_stop() -> None:
    answer = AnswerText(Letters(), ["STOP"])

    assert said(answer, "so STOP no") == "so "
    assert said(AnswerText(Letters(), ["STOP"]), "so ST") == "so ST"


def test_tools_are_looked_for_only_if_there_are_some() -> None:
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'

    assert said(AnswerText(Letters(), []), call) == call
    answer = AnswerText(Letters(), [], tools_of="call_1")
    assert said(answer, call) == ""
    assert answer.has_tool_calls
