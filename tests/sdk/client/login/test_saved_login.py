"""A login's file: nobody else reads it, and it is whole or not there."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from msgspec.structs import replace

from pilotlight.client.login.saved_login import SavedLogin, load_login, remove_login, save_login
from pilotlight.definitions.errors import Misuse

LOGIN = SavedLogin(
    id="l1", url="https://gpu.example.com", name="corp", issuer="https://login.example.com", client_id="cli",
    token_endpoint="https://login.example.com/token", token="secret-token", refresh_token="r1", expires_at=100.0,
)  # fmt: skip


def test_it_is_kept_for_its_user_alone(tmp_path: Path) -> None:
    """Mode 0600 in a folder of 0700, also over a file that others could read."""
    file = tmp_path / "home" / "login.json"
    save_login(file, LOGIN)
    assert load_login(file) == LOGIN
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o644)
    save_login(file, replace(LOGIN, token="other"))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [each.name for each in file.parent.iterdir()] == ["login.json"]


def test_none_and_a_broken_one(tmp_path: Path) -> None:
    file = tmp_path / "login.json"
    assert load_login(file) is None
    assert not remove_login(file)
    file.write_text("{")
    with pytest.raises(Misuse, match="pilotlight logout"):
        load_login(file)
    assert remove_login(file)


def test_nothing_is_left_of_a_removed_one(tmp_path: Path) -> None:
    """Neither what a process has left that was killed while it wrote."""
    file = tmp_path / "login.json"
    save_login(file, LOGIN)
    (tmp_path / ".login.json.0123abcd").write_text("secret")
    (tmp_path / "client.json").write_text("{}")
    assert remove_login(file)
    assert [each.name for each in tmp_path.iterdir()] == ["client.json"]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """Nor takes away what was there."""
    file = tmp_path / "login.json"
    file.mkdir()
    with pytest.raises(OSError, match="irectory"):
        save_login(file, LOGIN)
    assert [each.name for each in tmp_path.iterdir()] == ["login.json"]
