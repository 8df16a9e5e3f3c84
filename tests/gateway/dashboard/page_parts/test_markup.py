"""What is not markup is escaped, wherever it stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.dashboard.page_parts.markup import Markup, escaped, joined, tag, void


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    """Neither inside an element nor in an attribute."""
    made = tag("p", text, title=text)
    body = made.removeprefix("<p").removesuffix("</p>")
    assert "<" not in body
    assert body.count('"') == 2
    assert body.count(">") == 1


def test_markup_is_not_escaped_twice() -> None:
    """What was made here is left as it is."""
    inner = tag("b", "<x>")
    assert inner == "<b>&lt;x&gt;</b>"
    assert tag("p", inner, " & ") == "<p><b>&lt;x&gt;</b> &amp; </p>"
    assert joined([inner, "&"], " ") == "<b>&lt;x&gt;</b> &amp;"
    assert isinstance(escaped(inner), Markup)


def test_attributes_are_named_as_html_has_them() -> None:
    """Some are words of Python; those that are not there are left out."""
    made = void("input", class_="a", data_key="k", required=True, hidden=False, value=None, aria_label='"')
    assert made == '<input class="a" data-key="k" required aria-label="&quot;">'
