"""Licences are read as SPDX has them, and compared as a tenant or an operator names them."""

from __future__ import annotations

import pytest

from pilotlight_core.model.supply.licences import MOST_BRACKETS, LicenceFault, can_have, refusing_part, spdx_of


@pytest.mark.parametrize(
    ("expression", "denied", "allowed", "part"),
    [
        ("MIT", ("GPL-*",), (), ""),
        ("GPL-3.0-only", ("GPL-*",), (), "GPL-3.0-only"),
        ("gpl-3.0-only", ("GPL-*",), (), "gpl-3.0-only"),
        ("MIT OR GPL-3.0-only", ("GPL-*",), (), ""),
        ("MIT AND GPL-3.0-only", ("GPL-*",), (), "GPL-3.0-only"),
        ("(MIT OR AGPL-3.0-only) AND BSD-3-Clause", ("AGPL-*",), (), ""),
        ("(MIT OR BSD-3-Clause) AND AGPL-3.0-only", ("AGPL-*",), (), "AGPL-3.0-only"),
        (
            "GPL-2.0-only WITH Classpath-exception-2.0",
            ("GPL-2.0-only",),
            (),
            "GPL-2.0-only WITH Classpath-exception-2.0",
        ),
        ("LGPL-2.1-only", ("GPL-*",), (), ""),
        ("MIT", (), ("MIT", "BSD-*"), ""),
        ("Apache-2.0", (), ("MIT", "BSD-*"), "Apache-2.0"),
        ("Apache-2.0 OR MIT", (), ("MIT",), ""),
        ("MIT", ("MIT",), ("MIT",), "MIT"),
    ],
)
def test_a_package_is_refused_for_the_licence_without_which_it_cannot_be_had(
    expression: str, denied: tuple[str, ...], allowed: tuple[str, ...], part: str
) -> None:
    """A choice is a choice, and what is denied stays denied though it is allowed."""
    assert refusing_part(expression, denied, allowed) == part


@pytest.mark.parametrize(
    "text",
    ["", "MIT OR", "(MIT", "MIT)", "MIT BSD", "AND MIT", "MIT WITH", "MIT WITH (", "MIT; rm", "a" * 400, "(" * 250],
)
def test_what_is_no_expression_is_said_to_be_none(text: str) -> None:
    """An author's word may be anything."""
    with pytest.raises(LicenceFault):
        can_have(text, lambda _: True)


def test_brackets_within_brackets_are_few() -> None:
    """An expression is read by a function that calls itself, wherever it was called from: no one runs out of room."""
    assert can_have("(" * MOST_BRACKETS + "MIT" + ")" * MOST_BRACKETS, lambda _: True)
    with pytest.raises(LicenceFault, match="more than 32 brackets"):
        can_have("(" * 100 + "MIT" + ")" * 100, lambda _: True)


@pytest.mark.parametrize(
    ("expression", "text", "classifiers", "found"),
    [
        ("MIT OR Apache-2.0", "whatever", (), "MIT OR Apache-2.0"),
        ("", "Apache 2.0", (), "Apache-2.0"),
        ("", "BSD-2-Clause", (), "BSD-2-Clause"),
        ("", "", ("License :: OSI Approved :: MIT License", "Topic :: X"), "MIT"),
        ("", "Copyright 2020, all of us", ("License :: OSI Approved :: BSD License",), "BSD-3-Clause"),
        ("not (an", "a long text\nof a licence", (), ""),
        ("", "", (), ""),
    ],
)
def test_metadata_comes_to_an_expression_or_to_nothing(
    expression: str, text: str, classifiers: tuple[str, ...], found: str
) -> None:
    """The newest way of saying it goes first; nothing is guessed of a text."""
    assert spdx_of(expression, text, classifiers) == found
