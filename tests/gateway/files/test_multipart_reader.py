"""Forms, as they arrive and as somebody might send them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.errors import BadInput
from pilotlight_gateway.files.multipart_reader import (
    HEAD_BYTES,
    MOST_PARTS,
    MultipartReader,
    PartBegins,
    PartContent,
    PartEnds,
    boundary_of,
)
from tests.example_counts import examples

BOUNDARY = b"--x"
LIKE_DELIMITERS = [b"", b"\r\n", b"\r\n--", b"\r\n----", b"--x", b"\r\n----y"]


def part(name: str, content: bytes, file_name: str | None = None) -> bytes:
    """One part with its delimiter before it."""
    named = f'; filename="{file_name}"' if file_name is not None else ""
    head = f'Content-Disposition: form-data; name="{name}"{named}\r\nContent-Type: text/plain'
    return b"\r\n--" + BOUNDARY + b"\r\n" + head.encode() + b"\r\n\r\n" + content


def form(*parts: bytes) -> bytes:
    """A whole body."""
    return (b"".join(parts) + b"\r\n--" + BOUNDARY + b"--\r\n").removeprefix(b"\r\n")


def read(pieces: list[bytes]) -> tuple[list[tuple[str, str | None, bytes]], bool]:
    """The parts, and whether the form was whole."""
    reader, found = MultipartReader(BOUNDARY), []
    name, content = PartBegins("", None), b""
    for piece in pieces:
        for event in reader.feed(piece):
            if isinstance(event, PartBegins):
                name, content = event, b""
            elif isinstance(event, PartContent):
                content += event.data
            elif isinstance(event, PartEnds):
                found.append((name.name, name.file_name, content))
    return found, reader.is_over


@examples(100)
@given(
    contents=st.lists(
        st.binary(max_size=40) | st.sampled_from([b"", b"\r\n", b"\r\n--", b"\r\n----", b"--x", b"\r\n----y"]),
        max_size=5,
    ),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_a_form_is_the_same_however_it_arrives(contents: list[bytes], cuts: list[int]) -> None:
    """Cut anywhere; contents may look like delimiters, as long as they are none."""
    contents = [content for content in contents if b"\r\n--" + BOUNDARY not in b"\r\n" + content]
    body = form(*(part(f"p{number}", content, "f") for number, content in enumerate(contents)))
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    pieces = [body[start:end] for start, end in pairwise(places)]

    assert read(pieces) == ([(f"p{number}", "f", content) for number, content in enumerate(contents)], True)


def test_names_are_read_with_their_escapes() -> None:
    """As browsers and libraries write them."""
    body = form(part('a\\"b', b"1"), part("file", b"2", "../x;y.txt"))
    assert read([body])[0] == [('a"b', None, b"1"), ("file", "../x;y.txt", b"2")]


def test_what_follows_the_end_is_thrown_away() -> None:
    """However much it is."""
    reader = MultipartReader(BOUNDARY)
    reader.feed(form(part("a", b"1")))
    assert reader.feed(b"x" * 10**6) == []


@pytest.mark.parametrize(
    "body",
    [
        b"garbage" * 1_000,
        b"--" + BOUNDARY + b"nonsense",
        form(b"\r\n--" + BOUNDARY + b"\r\nContent-Type: text/plain\r\n\r\n1"),
        form(b"\r\n--" + BOUNDARY + b'\r\nContent-Disposition: attachment; name="a"\r\n\r\n1'),
        b"--" + BOUNDARY + b"\r\n" + b"x" * (HEAD_BYTES + 1),
        form(*(part("a", b"") for _ in range(MOST_PARTS + 1))),
    ],
)
def test_what_is_no_form_is_refused(body: bytes) -> None:
    """With the reason, and before it fills memory."""
    with pytest.raises(BadInput) as refused:
        read([body[start : start + 100] for start in range(0, len(body), 100)])
    assert refused.value.wire_code == "bad_request"


def test_a_form_that_breaks_off_is_not_over() -> None:
    """Whoever reads it has to look."""
    assert not read([form(part("a", b"1"))[:-6]])[1]


@pytest.mark.parametrize(
    ("given_type", "boundary"),
    [
        (b"multipart/form-data; boundary=abc", b"abc"),
        (b'Multipart/Form-Data; charset=utf-8; Boundary="a b"', b"a b"),
        (b"multipart/form-data; boundary=a; x=y", b"a"),
    ],
)
def test_a_boundary_is_found(given_type: bytes, boundary: bytes) -> None:
    """Quoted or not."""
    assert boundary_of(given_type) == boundary


@pytest.mark.parametrize(
    "given_type", [b"", b"application/json", b"multipart/form-data", b"multipart/form-data; boundary=" + b"x" * 71]
)
def test_without_a_boundary_there_is_no_form(given_type: bytes) -> None:
    """It is another type."""
    with pytest.raises(BadInput) as refused:
        boundary_of(given_type)
    assert refused.value.wire_code == "unsupported_media_type"
