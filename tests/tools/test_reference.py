"""The reference pages have everything that the code has, and each thing with its words."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import pytest
import typer

import pilotlight
from pilotlight.cli import main
from pilotlight_gateway.http.routes import OPERATIONS
from tools.reference import http
from tools.reference.cli import cli_page, commands_of
from tools.reference.decisions import listing
from tools.reference.docstrings import field_docs, markdown, table
from tools.reference.http import type_text
from tools.reference.sdk import GROUPS, sdk_page
from tools.reference.settings import PROCESSES, settings_page

http_page = cache(http.http_page)


def headings(page: str) -> list[str]:
    return [line.lstrip("# ") for line in page.splitlines() if line.startswith("#")]


def test_every_public_name_of_the_sdk_is_in_it_once() -> None:
    """A name that is made public gets its place on the page."""
    named = [name for names in GROUPS.values() for name in names]

    assert sorted(named) == sorted(pilotlight.__all__)
    assert set(headings(sdk_page())) >= {name for group, names in GROUPS.items() if group != "Errors" for name in names}
    assert all(f"| `{name}` |" in sdk_page() for name in GROUPS["Errors"])


def test_options_have_their_types_and_meaning() -> None:
    page = sdk_page()

    assert "| `timeout` | `float` | Seconds that one call may run. Default 300. |" in page
    assert "| `max_batch_size` | `int or None` | 1 to 1000 items. |" in page


def test_every_command_is_in_it_with_its_options() -> None:
    """Those of groups by their whole name; each option and argument says what it does."""
    root: Any = typer.main.get_command(main.app)
    page, found = cli_page(), headings(cli_page())
    for name, command in commands_of("pilotlight", root):
        inner = list(commands_of(name, command))
        assert name in found
        assert {whole for whole, _ in inner} <= set(found)
        for whole, one in inner or [(name, command)]:
            for parameter in one.params:
                assert parameter.help, f"{whole}: {parameter.name} is not explained"
    assert "| `--tail` | the last lines only; 100 unless --since is given |" in page


def test_every_operation_is_in_it() -> None:
    found = [heading for heading in headings(http_page()) if heading.startswith("`")]

    assert sorted(found) == sorted(f"`{operation.method} {operation.path}`" for operation in OPERATIONS)


def test_bodies_are_linked_and_have_their_fields() -> None:
    """With what the code says of a field."""
    page = http_page()

    assert "Body: [CallRequest](#callrequest) (`application/json` or `application/msgpack`)." in page
    assert "| `keep_s` | number or null | `null` | For a job: how long it is kept after its end;" in page


def test_every_setting_of_a_process_is_explained() -> None:
    page = settings_page()

    assert set(headings(page)) >= set(PROCESSES)
    assert [line for line in page.splitlines() if line.endswith("|  |")] == []


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$ref": "#/components/schemas/Usage"}, "[Usage](#usage)"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"type": "array", "items": {"type": "integer"}}, "list of integer"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({"enum": ["a", "b"]}, "`a` or `b`"),
        ({"type": "string", "format": "date"}, "date"),
        ({}, "anything"),
    ],
)
def test_a_schema_is_a_few_words(schema: dict[str, Any], text: str) -> None:
    assert type_text(schema) == text


def test_sections_of_a_docstring_are_tables() -> None:
    """What goes on in the next line belongs to the entry above; a bar does not end its cell."""
    text = (
        "Do it.\n\nArgs:\n    name: a | b,\n        or c.\n    *rest: more.\n\nRaises:\n    ValueError: if not.\n\nEnd."
    )

    assert markdown(text, {"name": "str"}).splitlines() == [
        *("Do it.", ""),
        *("| argument | type | is |", "|---|---|---|", "| `name` | `str` | a \\| b, or c. |", "| `*rest` |  | more. |"),
        *("", "| raises | when |", "|---|---|", "| `ValueError` | if not. |", "", "End."),
    ]


def test_a_table_without_rows_is_nothing() -> None:
    assert table(("a",), []) == ""


class Base(msgspec.Struct):
    first: int
    """The first one."""


class Derived(Base):
    second: int
    third: int
    """Not of the second."""


def test_fields_have_the_strings_behind_them() -> None:
    """Those of a base too."""
    assert field_docs(Derived) == {"first": "The first one.", "third": "Not of the second."}


def test_decisions_are_listed_by_their_titles() -> None:
    assert "\n- 0007: [Whole first](../decisions/0007-whole.md)\n" in listing(
        {"0007-whole.md": "# Whole first\n\nText."}
    )
