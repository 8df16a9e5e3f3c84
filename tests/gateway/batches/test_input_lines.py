"""The lines of a batch."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.records.batches import ITEMS_AT_MOST, BatchItem
from pilotlight_gateway.batches import input_lines
from pilotlight_gateway.batches.input_lines import InputLineReader

NAMES = st.text(min_size=1, max_size=20).filter(str.isprintable)


def needs_name(arguments: dict[str, Any]) -> None:
    """As a function that takes a name."""
    if not isinstance(arguments.get("name"), str):
        raise BadInput("input.name: this argument is missing.", field="input.name")


def read(data: bytes, size: int = 7) -> list[BatchItem]:
    """The items of a body that comes in pieces."""
    found = InputLineReader(needs_name)
    items = [item for start in range(0, len(data), size) for item in found.feed(data[start : start + size])]
    return items + found.finish()


def line(name: Any = "Ada", **more: Any) -> bytes:
    return msgspec.json.encode({"input": {"name": name}, **more})


@given(
    st.lists(st.tuples(NAMES, st.text()), min_size=1, unique_by=lambda row: row[0]),
    st.integers(1, 50),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
    st.booleans(),
)  # fmt: skip
def test_every_line_is_an_item_however_it_comes(rows: list[tuple[str, str]], size: int, end: bytes, ends: bool) -> None:
    """In their order, under their names, with what they say; empty lines are none."""
    data = end.join(line(text, custom_id=name) for name, text in rows) + (end if ends else b"")

    items = read(data, size)

    assert [item.index for item in items] == list(range(len(rows)))
    assert [item.custom_id for item in items] == [name for name, _ in rows]
    assert [msgspec.msgpack.decode(item.input) for item in items] == [{"name": text} for _, text in rows]


def test_a_line_without_a_name_is_called_by_its_number() -> None:
    """Of the line, empty ones counted, so that an editor finds it."""
    assert [item.custom_id for item in read(line() + b"\n\n" + line())] == ["1", "3"]


@pytest.mark.parametrize(
    ("bad", "field", "detail"),
    [
        (b"{", "line", "it is not JSON"),
        (b"[]", "line", "expected an object, got a list"),
        (b'{"input": {"name": "\xff"}}', "line", "it is not JSON"),
        (b'{"input": {"name": 1}}', "input.name", "this argument is missing"),
        (b'{"input": [1]}', "input", "expected an object, got a list"),
        (b'{"name": "Ada"}', "name", "unknown field"),
        (line(custom_id=""), "custom_id", "1 to 128"),
        (line(custom_id="x" * 129), "custom_id", "1 to 128"),
        (line(custom_id="a\nb"), "custom_id", "printable"),
        (line(custom_id="twice"), "custom_id", "'twice' stands on an earlier line"),
        (b'{"input": {"name": "x", "deep": ' + b"[" * 200 + b"]" * 200 + b"}}", "input", "nested deeper"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(bad: bytes, field: str, detail: str) -> None:
    """The first of them in the sentence."""
    with pytest.raises(BadInput, match=r"^line 3: ") as refused:
        read(line(custom_id="twice") + b"\n\n" + bad + b"\n" + line())

    more = refused.value.more
    assert (more["line"], more["field"]) == (3, field)
    assert detail in refused.value.detail
    assert [error["line"] for error in more["errors"]] == [3]


def test_of_many_wrong_lines_the_first_ones_are_told() -> None:
    """And how many there are."""
    with pytest.raises(BadInput, match=r"^line 1: .* 99 other lines are wrong too\.") as refused:
        read(b"\n".join([b"{}"] * 100))

    assert [error["line"] for error in refused.value.more["errors"]] == list(range(1, 21))


def test_a_wrong_line_is_told_with_its_id() -> None:
    """If it has one of its own."""
    with pytest.raises(BadInput) as refused:
        read(b'{"custom_id": "row-1"}\n{}')

    assert [error["custom_id"] for error in refused.value.more["errors"]] == ["row-1", None]


def test_nothing_is_no_batch() -> None:
    """Empty lines are nothing."""
    for data in (b"", b"\n\n \n"):
        with pytest.raises(BadInput, match="there is no line"):
            read(data)


def test_there_are_only_so_many_lines_of_such_a_length() -> None:
    """Told as soon as it is seen."""
    found = InputLineReader(lambda _: None)
    assert len(found.feed(b"{}\n" * ITEMS_AT_MOST)) == ITEMS_AT_MOST
    with pytest.raises(BadInput, match="more than 50000 lines") as refused:
        found.feed(b"{}\n")
    assert refused.value.wire_code == "too_large"

    blank = InputLineReader(lambda _: None)
    with pytest.raises(BadInput, match="more than 500000 lines") as refused:
        blank.feed(b"\n" * (input_lines.LINES_AT_MOST + 1))
    assert refused.value.wire_code == "too_large"

    with pytest.raises(BadInput, match="line 2: longer than") as refused:
        InputLineReader(lambda _: None).feed(b"{}\n" + b"x" * (input_lines.LINE_BYTES + 1))
    assert refused.value.wire_code == "too_large"


def test_a_long_line_in_small_pieces_is_copied_once() -> None:
    """What it costs grows with its length, not with its square: its pieces would copy 40 GB otherwise."""
    data = line("x" * (input_lines.LINE_BYTES - 100))

    (item,) = read(data, 1_024)

    assert len(item.input) > input_lines.LINE_BYTES - 200
