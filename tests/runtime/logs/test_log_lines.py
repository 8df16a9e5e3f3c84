"""Output becomes lines, and too much of it a count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.secrets.secret_masks import SecretMask
from pilotlight_runtime.logs.log_lines import CUT, MAX_LINE, LineSplitter, LogRateLimit, LogRateLimiter

VALUE = "tok-5f3c9a17"


def test_lines_are_whole_however_they_arrive() -> None:
    """A line may come in pieces, several at once, and with carriage returns."""
    splitter = LineSplitter()

    assert splitter.feed(b"one\ntw") == ["one"]
    assert splitter.feed(b"o\r\nthr") == ["two"]
    assert splitter.feed(b"") == []
    assert splitter.rest() == ["thr"]
    assert splitter.rest() == []


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_pieces_make_no_difference(pieces: list[bytes]) -> None:
    """The lines are the same in whatever pieces the bytes come."""
    whole, parts = LineSplitter(), LineSplitter()
    data = b"".join(pieces)

    assert [line for p in pieces for line in parts.feed(p)] + parts.rest() == whole.feed(data) + whole.rest()


def test_a_line_without_end_is_cut() -> None:
    """At 8 KiB; the rest of it is dropped, and the next line is whole again."""
    splitter = LineSplitter()

    [cut] = splitter.feed(b"x" * (MAX_LINE + 1))
    assert cut == "x" * MAX_LINE + CUT
    assert splitter.feed(b"y" * 100_000) == []
    assert splitter.feed(b"end of it\nnext\n") == ["next"]
    assert splitter.feed(b"z" * (MAX_LINE + 5) + b"\nafter\n") == ["z" * MAX_LINE + CUT, "after"]


def test_a_value_is_hidden_in_whatever_pieces_it_comes() -> None:
    """Also where its line is cut, and where its writer was killed within it."""
    mask = SecretMask([VALUE])
    splitter = LineSplitter(mask)

    assert splitter.feed(b"a token: tok-5f3c") == []
    assert splitter.feed(b"9a17 and on\n") == ["a token: *** and on"]
    assert splitter.feed(b"x" * (MAX_LINE - 3) + VALUE[:5].encode()) == []
    assert splitter.feed(VALUE[5:].encode() + b"y" * 20) == ["x" * (MAX_LINE - 3) + "***" + CUT]
    assert splitter.feed(b"the rest\nlast tok-5f3c") == []
    assert splitter.rest() == ["last ***"]


@given(st.lists(st.sampled_from([b"x" * 4_090, VALUE.encode(), b"y", b"\n"]), max_size=12), st.integers(1, 4_000))
def test_no_line_has_a_value_or_a_part_of_one(words: list[bytes], step: int) -> None:
    """However long lines are, and wherever the pieces begin."""
    splitter, data = LineSplitter(SecretMask([VALUE])), b"".join(words)
    pieces = [data[begin : begin + step] for begin in range(0, len(data), step)]
    lines = [line for piece in pieces for line in splitter.feed(piece)] + splitter.rest()

    assert {*"".join(line.removesuffix(CUT) for line in lines)} <= {*"xy*"}


def test_what_is_skipped_leaves_no_half_line() -> None:
    """After bytes were thrown away, reading goes on at the next line."""
    splitter = LineSplitter()
    splitter.feed(b"begun")

    assert splitter.skip(b" and lost\nlost too\nhalf") == 2
    assert splitter.feed(b" of it\nwhole\n") == ["whole"]


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    """Nothing a tenant prints breaks the log."""
    assert LineSplitter().feed(b"\xff\xfe\n") == ["\ufffd\ufffd"]


def test_a_second_has_room_for_so_much() -> None:
    """Lines and bytes are both counted; what did not fit is told when the second is over."""
    cap = LogRateLimiter(LogRateLimit(lines=2, bytes=1_000))

    assert [cap.admit(10, 1.0) for _ in range(3)] == [True, True, False]
    cap.drop(5, 5_000_000)
    assert cap.report(1.5) == ""
    assert cap.report(2.1) == "6 lines (5.0 MB) were dropped: a container may log 2 lines or 0.001 MB per second"
    assert cap.report(3.2) == ""
    assert [cap.admit(1_000, 4.0), cap.admit(1, 4.0)] == [True, False]
    assert cap.final().startswith("1 lines")
    assert cap.final() == ""
