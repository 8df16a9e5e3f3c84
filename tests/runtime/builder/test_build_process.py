"""What the process of a builder sends of what was installed. With uv: `tests/security/test_builder.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_runtime.builder.build_frames import PIECE_BYTES
from pilotlight_runtime.builder.build_process import BuildRefused, pieces_of


def test_files_are_sent_in_pieces(tmp_path: Path) -> None:
    """All of them, but for what the installer leaves beside; whether they can be run goes with them."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "run").write_text("#!")
    (tmp_path / "bin" / "run").chmod(0o755)
    (tmp_path / "large").write_bytes(b"x" * (PIECE_BYTES + 1))
    (tmp_path / "whole").write_bytes(b"x" * PIECE_BYTES)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / ".lock").write_bytes(b"")

    sent = [(each.path, len(each.data), each.is_last, each.is_program) for each in pieces_of(tmp_path)]

    assert sent == [
        ("empty", 0, True, False),
        ("large", PIECE_BYTES, False, False),
        ("large", 1, True, False),
        ("whole", PIECE_BYTES, True, False),
        ("bin/run", 2, True, True),
    ]


def test_a_link_is_sent_nowhere(tmp_path: Path) -> None:
    """An installer makes none of a wheel; one that did would be refused."""
    (tmp_path / "link").symlink_to("/etc/passwd")

    with pytest.raises(BuildRefused, match="'link'"):
        list(pieces_of(tmp_path))
