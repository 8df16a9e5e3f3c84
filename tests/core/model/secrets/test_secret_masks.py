"""Values are hidden in texts, whatever stands around them."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.secrets.secret_masks import HIDDEN, MOST_PATTERNS, NO_MASK, SecretMask
from tests.example_counts import examples

VALUE = "tok-5f3c9a17\"e2b8/4d60'ä"
TEXTS = st.text(st.sampled_from("abcab\n"), max_size=60)
VALUES = st.lists(st.text(st.sampled_from("abc"), min_size=8, max_size=12), min_size=1, max_size=4)


@pytest.mark.parametrize(
    "written",
    [VALUE, repr(VALUE)[1:-1], json.dumps(VALUE)[1:-1], json.dumps(VALUE, ensure_ascii=False)[1:-1], quote(VALUE, "")],
)
def test_a_value_is_hidden_as_programs_write_it(written: str) -> None:
    """As it is, as a literal of Python or JSON, and in an address."""
    assert SecretMask([VALUE]).hide(f"before {written} after {written}") == f"before {HIDDEN} after {HIDDEN}"


def test_each_line_of_a_value_is_hidden() -> None:
    """Programs print them one by one; short ones stay."""
    mask = SecretMask(["BEGIN KEY\nMIGHAgEAMBMG\n}\nEND KEY.\n"])
    assert mask.hide("MIGHAgEAMBMG\n}\nsaid END KEY.") == f"{HIDDEN}\n}}\nsaid {HIDDEN}"


def test_of_values_that_overlap_nothing_stays() -> None:
    """Neither where one is a part of another, nor where they share a piece."""
    mask = SecretMask(["abcdefgh", "abcdefghijkl", "ghijklmnop"])
    assert mask.hide("abcdefghijkl") == HIDDEN
    assert mask.hide("xabcdefghijklmnopx") == f"x{HIDDEN}x"


def test_of_a_value_at_the_cut_nothing_stays() -> None:
    """Whether it ends behind the cut or begins there."""
    mask, text = SecretMask(["abcdefgh"]), b"0123abcdefgh89"
    assert [mask.hide_bytes(text, most) for most in (4, 5, 11, 12, 13)] == [
        b"0123", b"0123***", b"0123***", b"0123***", b"0123***8",
    ]  # fmt: skip


def test_the_beginning_of_a_value_at_the_end_is_hidden() -> None:
    """Whoever wrote it may have been killed in between; four characters tell that it is one."""
    mask = SecretMask(["abcdefgh"])
    assert mask.hide_cut(b"said abcdefg") == b"said ***"
    assert mask.hide_cut(b"said abcd") == b"said ***"
    assert mask.hide_cut(b"said abc") == b"said abc"
    assert mask.hide_cut(b"abcdefgh, abcdX") == b"***, abcdX"
    assert mask.hide_cut(b"") == b""


def test_without_values_nothing_is_changed() -> None:
    """As most functions are."""
    assert NO_MASK.hide("text") == "text"
    assert NO_MASK.hide_bytes(b"text", 2) == b"te"
    assert NO_MASK.longest == 0


def test_what_is_no_text_is_hidden_too() -> None:
    """Bytes that are no UTF-8 around it, and a lone surrogate in an error."""
    mask = SecretMask(["abcdefgh"])
    assert mask.hide_bytes(b"\xff\xfeabcdefgh\xff") == b"\xff\xfe***\xff"
    assert mask.hide("\ud800abcdefgh") == "\ud800***"


def test_a_mask_is_bounded() -> None:
    """Each line is looked for in all that a container prints."""
    with pytest.raises(ValueError, match="257 lines together"):
        SecretMask([f"line-{number:04}" for number in range(MOST_PATTERNS + 1)])


@given(TEXTS, VALUES)
@examples(200)
def test_no_value_is_left_in_any_text(text: str, values: list[str]) -> None:
    """And nothing is added but the sign."""
    hidden = SecretMask(values).hide(text)

    assert not [value for value in values if value in hidden]
    assert set(hidden) <= {*text, *HIDDEN}
