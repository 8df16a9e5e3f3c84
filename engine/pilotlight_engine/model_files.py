"""The JSON files beside a model's weights, which are a tenant's: read with care, and without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG_FILE, GENERATION_FILE = "config.json", "generation_config.json"


def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in a file; None: there is none."""
    try:
        read = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def end_ids_in(folder: Path) -> frozenset[int]:
    """The tokens that end a text, by the files of a folder."""
    return end_ids_of(read_object(folder / CONFIG_FILE) or {}, read_object(folder / GENERATION_FILE) or {})


def end_ids_of(config: Mapping[str, Any], generation: Mapping[str, Any]) -> frozenset[int]:
    """The same, by their content. `generation_config.json` goes first: it may name several."""
    named = generation.get("eos_token_id", config.get("eos_token_id"))
    ids = named if isinstance(named, list) else [named]
    return frozenset(int(each) for each in ids if isinstance(each, int) and each >= 0)
