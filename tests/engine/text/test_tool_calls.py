"""Calls of tools in text that comes in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pilotlight_engine.text.tool_call_head import ToolCallHead
from pilotlight_engine.text.tool_calls import MAX_CALL, ToolCalls

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo }", "deep": {"a": [1]}}}\n</tool_call>'


def parted(text: str, size: int) -> tuple[str, list[dict[str, Any]]]:
    """The text and the calls that come of a text in pieces of so many characters."""
    tools = ToolCalls("call_1")
    said, calls = "", list[dict[str, Any]]()
    found = [tools.add(text[at : at + size]) for at in range(0, len(text), size)]
    for piece in (*found, tools.flush()):
        said += piece.text
        for each in piece.calls:
            if "id" in each:
                calls.append(dict(each))
            else:
                calls[each["index"]]["arguments"] += each["arguments"]
    return said, calls


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_calls_are_taken_out_however_they_come(size: int) -> None:
    said, calls = parted(f"Let me see. {CALL}\n{CALL}", size)

    assert said == "Let me see. "
    assert [call["name"] for call in calls] == ["weather", "weather"]
    assert [json.loads(call["arguments"])["city"] for call in calls] == ["Oslo }", "Oslo }"]
    assert len({call["id"] for call in calls}) == 2
    assert parted(CALL, 5)[1] == parted(CALL, 9)[1]  # its id too


def test_arguments_are_passed_on_as_they_come() -> None:
    tools = ToolCalls("c")
    began = tools.add('<tool_call>{"name": "f", "arguments": {"a": ')

    assert began.calls[0]["name"] == "f"
    assert tools.add('"b').calls == [{"index": 0, "arguments": '"b'}]


def test_a_call_in_another_order_comes_when_it_is_whole() -> None:
    assert parted('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', 4)[1][0]["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>no JSON</tool_call>",
        "a <tool",
        "<tool_call>[1]</tool_call> b",
        '<tool_call>{"name": "a\\q", "arguments": {}}</tool_call>',  # the name is no JSON
        '<tool_call>{"name": "a", "arguments": </tool_call>',
    ],
)
def test_what_is_no_call_is_text(text: str) -> None:
    assert parted(text, 3) == (text, [])


def test_a_call_without_an_end_is_text_beyond_its_bound() -> None:
    text = "<tool_call>" + "x" * (MAX_CALL + 1)

    assert parted(text, 1000) == (text, [])


def test_a_piece_costs_no_more_than_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call whose name never ends is read once, and not again with each of its tokens."""
    read = list[int]()
    add = ToolCallHead.add

    def counted(head: ToolCallHead, text: str) -> None:
        read.append(len(text))
        add(head, text)

    monkeypatch.setattr(ToolCallHead, "add", counted)
    tools = ToolCalls("c")
    for text in ('<tool_call>{"name": "', *("name" * 10 for _ in range(200))):
        tools.add(text)

    assert sum(read) == len('{"name": "') + 200 * 40
