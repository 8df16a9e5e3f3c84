"""A guest puts values where its function wants them, and hides them in errors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_runtime.guest.basics import remote_errors
from pilotlight_runtime.guest.basics.remote_errors import remote_error
from pilotlight_runtime.guest.basics.secret_places import place_secrets

VALUE = "a value that nobody sees"


@pytest.fixture(autouse=True)
def _one_guest() -> Iterator[None]:
    """What a guest's process does once for all."""
    yield
    remote_errors.hide_in_errors(())


def test_variables_and_files_have_the_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is its reader's alone, and has the bytes of the value."""
    monkeypatch.setenv("TOKEN", "before")
    key = tmp_path / "key.pem"
    place_secrets({"TOKEN": VALUE, str(key): "two\nlines of ä key\n"})

    assert os.environ["TOKEN"] == VALUE
    assert key.read_bytes() == "two\nlines of ä key\n".encode()
    assert stat.S_IMODE(key.stat().st_mode) == 0o400


def test_the_environment_that_others_see_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what the process was started with."""
    monkeypatch.setenv("TOKEN", "before")
    place_secrets({"TOKEN": VALUE})
    assert VALUE.encode() not in Path("/proc/self/environ").read_bytes()


def test_errors_hide_them_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """In message and traceback, before either is shortened."""
    monkeypatch.setenv("TOKEN", "before")
    place_secrets({"TOKEN": VALUE})
    error = remote_error(ValueError(f"wrong token {VALUE!r}"))
    cut = remote_error(ValueError("x" * 1_020 + VALUE + "y" * 9_000))

    assert error.message == "wrong token '***'"
    assert VALUE not in error.traceback
    assert "a val" not in cut.message + cut.traceback


def test_without_secrets_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most functions have none."""
    before = dict(os.environ)
    place_secrets({})
    assert dict(os.environ) == before
    assert remote_error(ValueError(VALUE)).message == VALUE
