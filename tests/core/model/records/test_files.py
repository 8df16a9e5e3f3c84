"""Files that tenants upload."""

from __future__ import annotations

import pytest

from pilotlight_core.model.records.files import FileRecord, file_document, plain_file_name


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("in.jsonl", "in.jsonl"),
        ("../../etc/passwd", "passwd"),
        ("C:\\temp\\in.jsonl", "in.jsonl"),
        ("a\x00b\r\nc", "abc"),
        ("..", "file"),
        ("a/", "file"),
        ("", "file"),
        ("x" * 300, "x" * 255),
    ],
)
def test_a_name_is_no_path(given: str, plain: str) -> None:
    """It is a text for people."""
    assert plain_file_name(given) == plain


def test_a_file_is_there_until_it_expires() -> None:
    """And is told as OpenAI's clients know one."""
    record = FileRecord(
        tenant="acme", id="file-1", name="in", purpose="batch", size=3, created_at=1.5, expires_at=9.0, by="k", parts=()
    )
    assert record.is_kept(8.9)
    assert not record.is_kept(9.0)
    told = file_document(record)
    assert (told["bytes"], told["created_at"], told["expires_at"], told["object"]) == (3, 1, 9, "file")
    assert "tenant" not in told
