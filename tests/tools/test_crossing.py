"""Which files count as crossed by a call, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

from tools.crossing import first_entries, spans_by_file


def test_spans_of_all_processes_of_a_role_are_those_of_the_file(tmp_path: Path) -> None:
    """Files of other packages do not count."""
    home = "/tree/gateway/pilotlight_gateway/home/home.py"
    (tmp_path / "gateway-1").write_text(json.dumps([[home, [1.0, 2.0]], ["/tree/core/pilotlight_core/ids.py", [1, 2]]]))
    (tmp_path / "gateway-2").write_text(json.dumps([[home, [4.0, 5.0]]]) + "\n")

    spans = spans_by_file(tmp_path)

    assert list(spans) == ["gateway pilotlight_gateway/home/home.py"]
    assert sorted(spans["gateway pilotlight_gateway/home/home.py"]) == [(1.0, 2.0), (4.0, 5.0)]


def test_a_file_is_entered_once_in_each_window_in_which_it_was_busy() -> None:
    """The instant counts from the window's begin; a window that it did not touch has none."""
    busy = [(10.2, 10.3), (10.1, 10.15), (30.0, 30.5)]
    assert first_entries(busy, [(10.0, 11.0), (20.0, 21.0), (29.0, 31.0)]) == [10.1 - 10.0, 1.0]
