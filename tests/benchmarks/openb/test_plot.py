"""The picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.openb.plot import draw


def test_a_picture_is_written(tmp_path: Path) -> None:
    """One panel a trace, as PNG."""
    path = tmp_path / "x.png"
    curves = {"a": {"ours": [np.linspace(0, 98, 131)], "fgd": [np.linspace(0, 97, 131)]}}
    draw(curves, path)
    assert path.read_bytes().startswith(b"\x89PNG")
