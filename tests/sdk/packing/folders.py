"""Folders of files, as a tenant has them."""

from __future__ import annotations

from pathlib import Path


def write(folder: Path, *names: str) -> Path:
    """Write files, each with its own name in it; the folder."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder
