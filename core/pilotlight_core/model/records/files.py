"""Files that tenants upload by OpenAI's API: inputs of batches, above all."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from pilotlight_core.model.records.jobs import BlobRef

FILE_ID = re.compile(r"file-[0-9a-z]{20}")
FILE_BYTES = 200 * 10**6
"""Of one file."""
MOST_FILES = 1_000
"""Of one tenant: each process has their records in memory."""
KEPT_S = 30 * 86_400.0
LEAST_KEPT_S = 3_600.0
PURPOSE = re.compile(r"[a-z][a-z_-]{0,31}")
BATCH_INPUT, BATCH_OUTPUT = "batch", "batch_output"
LONGEST_FILE_NAME = 255


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file, whose content is in blobs that are its own. Key: `file.{tenant}.{id}`."""

    tenant: str
    id: str
    name: str
    """As its owner calls it: a text for people, no path."""
    purpose: str
    size: int
    created_at: float
    """Unix seconds."""
    expires_at: float
    """From then on it is not there any more."""
    by: str
    """The id of the API key that uploaded it."""
    parts: tuple[BlobRef, ...]

    def is_kept(self, at: float) -> bool:
        """Whether it is there at the unix second `at`."""
        return at < self.expires_at


def plain_file_name(name: str) -> str:
    """A file's name without the folders before it and without what cannot be printed."""
    last = re.split(r"[/\\]", name)[-1]
    plain = "".join(character for character in last if character.isprintable())[:LONGEST_FILE_NAME].strip()
    return plain if plain not in ("", ".", "..") else "file"


def file_document(record: FileRecord) -> dict[str, Any]:
    """A file as OpenAI's clients know one."""
    return {
        "id": record.id, "object": "file", "bytes": record.size, "created_at": int(record.created_at),
        "expires_at": int(record.expires_at), "filename": record.name, "purpose": record.purpose,
        "status": "processed", "status_details": None,
    }  # fmt: skip
