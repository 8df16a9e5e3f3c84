"""The files of the dashboard: style, modules, and the one library. Their address has their digest, so they are kept."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parent / "static"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Others are not served."""
DIGEST_DIGITS = 16
SMALL_BYTES = 600
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True, kw_only=True)
class AssetFile:
    kind: str
    plain: bytes

    @cached_property
    def packed(self) -> bytes | None:
        """None: it is not worth it."""
        return gzip.compress(self.plain, 9, mtime=0) if len(self.plain) > SMALL_BYTES else None


class AssetFiles:
    """All of them, read once."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files = {
            str(path.relative_to(folder)): AssetFile(kind=KINDS[path.suffix], plain=path.read_bytes())
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in KINDS
        }
        whole = hashlib.sha256()
        for name, file in self._files.items():
            whole.update(f"{name} {len(file.plain)}\n".encode() + file.plain)
        self.digest = whole.hexdigest()[:DIGEST_DIGITS]

    @property
    def base(self) -> str:
        """Where they are."""
        return f"/ui/static/{self.digest}"

    def find(self, name: str) -> AssetFile | None:
        return self._files.get(name)
