"""A restore that has begun is seen until it has ended."""

from __future__ import annotations

from pathlib import Path

from pilotlight_supervisor.restore_mark import MARK, begin_restore, end_restore, incomplete_restore


def test_a_restore_is_incomplete_until_it_has_ended(tmp_path: Path) -> None:
    """The mark names the backup, and is the operator's only."""
    state = tmp_path / "state"
    assert incomplete_restore(state) == ""

    begin_restore(state, tmp_path / "copy")
    assert f"restore of {tmp_path / 'copy'} did not come" in incomplete_restore(state)
    assert (state / MARK).stat().st_mode & 0o777 == 0o600

    end_restore(state)
    assert incomplete_restore(state) == ""
    assert list(state.iterdir()) == []
