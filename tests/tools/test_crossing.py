"""Which files count as crossed by a call, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

from tools.crossing import first_entries, instants_by_function


def test_instants_of_all_processes_of_a_role_are_one_list(tmp_path: Path) -> None:
    """Milliseconds become seconds; files of other packages do not count."""
    home = "/tree/gateway/pilotlight_gateway/home/home.py:cancel"
    (tmp_path / "gateway-1").write_text(
        json.dumps({home: [1000, 2000], "/tree/core/pilotlight_core/ids.py:new": [1000]})
    )
    (tmp_path / "gateway-2").write_text(json.dumps({home: [4500]}) + "\n")

    instants = instants_by_function(tmp_path)

    assert list(instants) == ["gateway pilotlight_gateway/home/home.py:cancel"]
    assert sorted(instants["gateway pilotlight_gateway/home/home.py:cancel"]) == [1.0, 2.0, 4.5]


def test_each_window_has_the_first_instant_in_it() -> None:
    """It counts from the window's begin; a window without has none."""
    assert first_entries([10.5, 10.25, 30.0], [(10.0, 11.0), (20.0, 21.0), (29.0, 31.0)]) == [0.25, 1.0]
